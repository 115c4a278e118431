// a decision is sent once, and asks for a drive before it is sent
document.querySelectorAll("form[action='/decide']").forEach(function (form) {
  form.addEventListener("submit", function (event) {
    var boxes = form.querySelectorAll("input[type=checkbox][name=drive]");
    if (boxes.length && !form.querySelector("input[type=checkbox][name=drive]:checked")) {
      event.preventDefault();
      boxes[0].setCustomValidity("Tick one or more drives.");
      boxes[0].reportValidity();
      boxes[0].setCustomValidity("");
      return;
    }
    setTimeout(function () { form.querySelectorAll("button").forEach(function (button) { button.disabled = true; }); });
  });
});
