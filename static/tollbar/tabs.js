// Unfold measures its tabs while the page is still hidden and may fold all of them into the "more" menu. Measuring again
// when the page is there takes them out, one a time.
document.addEventListener("alpine:initialized", () =>
  requestAnimationFrame(() => {
    const folded = document.getElementById("tabs-dropdown");
    for (let left = folded ? folded.childElementCount : 0; left > 0; left -= 1) {
      window.dispatchEvent(new Event("resize"));
    }
  }),
);
