// What HTML and htmx cannot do by themselves: sliders that move their number, the replay on the front
// page, a picked step that stays open while tokens arrive, and a word when the network fails.
"use strict";

document.addEventListener("input", ({ target }) => {
  const setting = target.closest(".setting");
  if (!setting) return;
  const slider = setting.querySelector("[type=range]");
  const number = setting.querySelector(".input");
  if (target === slider) number.value = slider.value;
  else if (slider && number.value !== "") slider.value = number.value;
});

// A token or a position that was picked stays picked, and its step stays open, while others arrive and while the run
// is judged; one that has the focus keeps it.
const STEPS = "#lab-body [type=radio][name=step]";
const holdsTokens = ({ id }) => id === "lab-tokens" || id === "lab-body";
let picked, focused;
document.addEventListener("htmx:oobBeforeSwap", (event) => {
  const checked = document.querySelector(`${STEPS}:checked`);
  if (event.detail.target.id === "step" && checked) event.preventDefault();
  if (!holdsTokens(event.detail.target)) return;
  picked = checked?.value;
  focused = document.querySelector(`${STEPS}:focus`)?.value;
});
document.addEventListener("htmx:oobAfterSwap", ({ detail }) => {
  if (!holdsTokens(detail.target)) return;
  const token = (number) => document.querySelector(`${STEPS}[value="${number}"]`);
  token(focused)?.focus();
  const again = token(picked);
  if (!again || again.checked) return;
  again.checked = true;
  if (detail.target.id !== "lab-body") return;
  htmx.process(again.form); // it is new, and must hear of the change
  htmx.trigger(again, "change");
});

// Where Stop was pressed, Run is the next thing to press once the run has ended.
document.addEventListener("htmx:oobBeforeSwap", ({ detail }) => {
  const pressed = document.activeElement;
  if (detail.target.id !== "lab-buttons" || !detail.target.contains(pressed)) return;
  requestAnimationFrame(() => {
    const again = document.getElementById(pressed.id);
    (again && !again.disabled ? again : document.getElementById("do-run")).focus();
  });
});

// The bar at the foot of a phone says how many goals are met.
document.addEventListener("htmx:oobAfterSwap", ({ detail }) => {
  const jump = document.getElementById("lab-jump");
  if (jump && detail.target.id === "lab-chips") jump.textContent = document.getElementById("lab-chips").dataset.jump;
});

document.addEventListener("htmx:sendError", () => say("The server cannot be reached. What you typed is kept; try again."));
document.addEventListener("htmx:responseError", ({ detail }) => {
  const expired = detail.xhr.status === 403;
  say(expired ? "This page is too old to be sent. Copy what you typed, then reload." : "The server could not do that. Nothing was lost; try again.");
});

document.addEventListener("click", async ({ target }) => {
  const button = target.closest("[data-copy]");
  if (!button) return;
  await navigator.clipboard.writeText(button.previousElementSibling.textContent);
  button.textContent = "Copied";
  setTimeout(() => (button.textContent = "Copy"), 2000);
});

// In an ordering, a part that takes a place gives the one that is free then to the part that had it.
document.addEventListener("change", ({ target }) => {
  if (!target.matches(".places select")) return;
  const all = [...target.closest(".places").querySelectorAll("select")];
  const other = all.find((select) => select !== target && select.value === target.value);
  const free = all.map((_, at) => String(at + 1)).find((place) => all.every((select) => select.value !== place));
  if (other && free) other.value = free;
});

function say(words) {
  const toast = document.createElement("p");
  toast.className = "toast";
  toast.textContent = words;
  document.getElementById("toast").replaceChildren(toast);
  setTimeout(() => toast.remove(), 8000);
}

// The front page replays a recorded run once: the server sends every step, the script shows them in turn.
function replay(panel) {
  const tokens = [...panel.querySelectorAll("[data-token]")];
  const steps = [...panel.querySelectorAll("[data-step]")];
  const at = (n) => {
    tokens.forEach((token) => {
      token.hidden = Number(token.dataset.token) > n;
      // a loop is known only once it is long enough
      token.classList.toggle("pending", n < Number(panel.dataset.loopKnown));
    });
    steps.forEach((step) => (step.hidden = Number(step.dataset.step) !== n));
    panel.querySelector("[data-count]").textContent = `step ${n}`;
    panel.querySelector("[data-stuck]").hidden = n < Number(panel.dataset.loopKnown);
    panel.querySelector("[data-running]").hidden = n >= Number(panel.dataset.loopKnown);
  };
  let shown = 1;
  at(shown);
  const clock = setInterval(() => {
    shown += 1;
    at(shown);
    if (shown >= tokens.length) clearInterval(clock);
  }, 1000 / 6);
}

const front = document.querySelector("[data-replay]");
if (front && !matchMedia("(prefers-reduced-motion: reduce)").matches) replay(front);

// A mock interview: the clock counts down in the page, and the server ends it. What stands in the form is
// kept shortly before the end, and whenever the page goes out of sight.
const keep = () => document.getElementById("kept") && htmx.trigger("#kept", "keep");
let ends = null;
function readClock() {
  const clock = document.querySelector("[data-seconds]");
  ends = clock && Date.now() + 1000 * Number(clock.dataset.seconds);
}
setInterval(() => {
  const clock = document.querySelector("[data-seconds]");
  if (!clock || ends === null) return;
  const left = Math.round((ends - Date.now()) / 1000);
  clock.textContent = `${Math.floor(Math.max(0, left) / 60)}:${String(Math.max(0, left) % 60).padStart(2, "0")} left`;
  if (left === 2) keep();
  if (left <= 0) {
    ends = null;
    document.getElementById("finish")?.requestSubmit();
  }
}, 1000);
readClock();
document.addEventListener("htmx:load", ({ target }) => target.id === "sitting" && readClock());
document.addEventListener("visibilitychange", () => document.visibilityState === "hidden" && keep());

// Pages show the learner's own time and days; the server reads the zone from here.
document.cookie = `timezone=${Intl.DateTimeFormat().resolvedOptions().timeZone};path=/;max-age=31536000;samesite=lax`;

// Forms that came by a stream have no CSRF token, and signing in gives the browser another one than open tabs have.
document.addEventListener("htmx:configRequest", ({ detail }) => {
  const token = document.cookie.match(/(?:^|; )csrftoken=([^;]*)/);
  if (token && detail.verb === "post") detail.parameters.csrfmiddlewaretoken = token[1];
});
