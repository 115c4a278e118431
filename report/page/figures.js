// a figure is drawn when the reader scrolls near it or the browser has time, all of them before the page is printed
(function () {
  // these buttons and no others: Plotly's own bar has one that sends the chart, with its names, to Plotly's servers
  var config = { displaylogo: false, displayModeBar: "hover", responsive: true, showSendToCloud: false, plotlyServerURL: "",
    modeBarButtons: [["toImage", "zoom2d", "resetScale2d"]] };
  var figures = Array.from(document.querySelectorAll(".plotly-graph-div"));
  function draw(figure) {
    var data = figure.querySelector("script[type='application/json']");
    if (!data) return;
    var spec = JSON.parse(data.textContent);
    data.remove();
    Plotly.newPlot(figure, spec.data, spec.layout, config);
    frame(figure);
    figure.on("plotly_afterplot", function () { frame(figure); });
  }
  // paper has a width of its own, and no time to draw again: there a figure is scaled by its size on the screen
  function frame(figure) {
    var size = figure._fullLayout;
    figure.querySelectorAll(".main-svg").forEach(function (svg) { svg.setAttribute("viewBox", "0 0 " + size.width + " " + size.height); });
    figure.style.setProperty("--shape", size.width + " / " + size.height);
  }
  function fit() { document.querySelectorAll(".js-plotly-plot").forEach(function (figure) { Plotly.Plots.resize(figure); }); }
  function open(details) { details.open = true; }
  window.drawAll = function () { document.querySelectorAll("details.more").forEach(open); figures.forEach(draw); };
  // a link to what is folded away opens it
  function reveal() {
    var target = location.hash.length > 1 && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!target) return;
    target.querySelectorAll(":scope > details.more").forEach(open);
    for (var one = target.closest("details.more"); one; one = one.parentElement.closest("details.more")) one.open = true;
    target.scrollIntoView();
  }
  window.addEventListener("hashchange", reveal);
  window.addEventListener("load", reveal);
  if (location.hash === "#print" || !window.IntersectionObserver) window.drawAll();
  else {
    var near = new IntersectionObserver(function (entries) {
      entries.forEach(function (entry) { if (entry.isIntersecting) { near.unobserve(entry.target); draw(entry.target); } });
    }, { rootMargin: "700px" });
    figures.forEach(function (figure) { near.observe(figure); });
    window.addEventListener("load", drawRest);
  }
  // the others when the browser has time: a page that is saved or photographed has them all
  function drawRest() {
    (window.requestIdleCallback || setTimeout)(function () {
      var next = figures.find(function (figure) { return figure.checkVisibility() && figure.querySelector("script[type='application/json']"); });
      if (next) { draw(next); drawRest(); }
    });
  }
  window.addEventListener("load", fit);
  var folded = [];
  window.addEventListener("beforeprint", function () {
    folded = Array.from(document.querySelectorAll("details.more:not([open])"));
    window.drawAll();
  });
  window.addEventListener("afterprint", function () { folded.forEach(function (details) { details.open = false; }); });
})();
