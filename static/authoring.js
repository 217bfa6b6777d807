// Writing questions: only the fields of the chosen kind, one more row, and a preview that follows what is typed.

const form = document.querySelector("form:has([data-preview])");
const kind = form?.querySelector("#id_kind");

function showKind() {
  for (const part of form.querySelectorAll("fieldset.kind")) part.hidden = !part.classList.contains(kind.value);
}

if (form) {
  showKind();
  kind.addEventListener("change", showKind);

  const button = form.querySelector("#do-preview");
  const frame = form.querySelector("[data-preview]");
  let wait = 0, top = 0;
  const preview = () => {
    top = frame.contentDocument?.documentElement.scrollTop ?? 0;
    form.requestSubmit(button);
  };
  frame.addEventListener("load", () => frame.contentDocument?.documentElement.scrollTo(0, top));
  form.addEventListener("input", () => {
    clearTimeout(wait);
    wait = setTimeout(preview, 800);
  });
  if (kind.value) preview();
}

for (const rows of document.querySelectorAll("[data-rows]")) {
  const button = rows.querySelector("[data-add-row]");
  const total = rows.querySelector("[name$=TOTAL_FORMS]");
  button.hidden = false;
  button.addEventListener("click", () => {
    const last = [...rows.querySelectorAll(".one-row")].at(-1);
    const number = Number(total.value);
    if (number >= Number(rows.dataset.most)) return;
    const row = last.cloneNode(true);
    row.querySelector("legend").textContent = row.querySelector("legend").textContent.replace(/\d+$/, number + 1);
    for (const field of row.querySelectorAll("[name], [for], [id]"))
      for (const attribute of ["name", "for", "id"])
        if (field.hasAttribute(attribute))
          field.setAttribute(attribute, field.getAttribute(attribute).replace(/-\d+-/, `-${number}-`));
    for (const field of row.querySelectorAll("input, textarea"))
      if (field.type === "checkbox") field.checked = false;
      else field.value = "";
    last.after(row);
    total.value = number + 1;
    row.querySelector("input, textarea").focus();
  });
}
