"""Who uses the site: accounts, and guests who have none yet."""
