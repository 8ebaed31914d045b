/** Of the whole document. The console has its own. */
export const DOCUMENT_STYLE = `
:root { color-scheme: light; }
body { margin: 0 auto; padding: 24px; max-width: 900px; color: #16181d; background: #ffffff;
  font: 15px/1.5 system-ui, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
@media print {
  @page { margin: 12mm; }
  body { padding: 0; max-width: none; }
}
`

/**
 * Of the article, in the document and in the console. Colors of lines and of small text follow the
 * text, so that they are readable on a light and on a dark ground.
 */
export const REPORT_STYLE = `
.posture-report h1 { margin: 0; font-size: 26px; line-height: 1.2; }
.posture-report h2 { margin: 0 0 4px; font-size: 17px; }
.posture-report section { margin-top: 24px; }
.posture-report p, .posture-report ul { margin: 4px 0; }
.posture-report .about, .posture-report figcaption { font-size: 13px; color: color-mix(in srgb, CanvasText 75%, Canvas); }
.posture-report .summary { margin: 12px 0; font-size: 18px; }
.posture-report .figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(150px, 1fr)); gap: 12px; margin: 16px 0 0; }
.posture-report .figures div { padding: 8px 12px; border: 1px solid color-mix(in srgb, currentColor 20%, transparent); border-radius: 6px; }
.posture-report .figures dt, .posture-report .figures dd + dd { font-size: 13px; color: color-mix(in srgb, CanvasText 75%, Canvas); }
.posture-report .figures dd { margin: 0; font-size: 20px; }
.posture-report table { width: 100%; border-collapse: collapse; font-size: 14px; }
.posture-report th, .posture-report td { padding: 4px 10px 4px 0; text-align: left; vertical-align: top;
  border-bottom: 1px solid color-mix(in srgb, currentColor 15%, transparent); }
@media screen and (max-width: 600px) {
  .posture-report table { font-size: 12px; table-layout: fixed; }
  .posture-report th:first-child { width: 22%; }
  .posture-report .level { white-space: normal; }
  .posture-report th, .posture-report td { padding-right: 6px; overflow-wrap: anywhere; hyphens: auto; white-space: normal; }
}
.posture-report figure { margin: 8px 0; }
.posture-report svg { display: block; width: 100%; height: auto; }
.posture-report svg .grid { stroke: currentColor; stroke-opacity: 0.2; fill: none; }
.posture-report svg .line { stroke: #c2521f; stroke-width: 2; fill: none; }
.posture-report i { display: inline-block; width: 10px; height: 10px; }
.posture-report .good { fill: #2f855a; }
.posture-report .warn { fill: #b7791f; }
.posture-report .bad { fill: #c53030; }
.posture-report .plain { fill: #858c9a; }
.posture-report i.good { background: #2f855a; }
.posture-report i.warn { background: #b7791f; }
.posture-report i.bad { background: #c53030; }
.posture-report i.plain { background: #858c9a; }
.posture-report .level { white-space: nowrap; }
.posture-report .level.high { font-weight: 700; }
@media print {
  .posture-report { font-size: 11px; print-color-adjust: exact; }
  .posture-report h1 { font-size: 18px; }
  .posture-report h2 { font-size: 13px; break-after: avoid; }
  .posture-report section { margin-top: 12px; }
  .posture-report .summary { font-size: 13px; }
  .posture-report table, .posture-report .about, .posture-report figcaption, .posture-report .figures dt,
  .posture-report .figures dd + dd { font-size: 10px; }
  .posture-report .figures dd { font-size: 15px; }
  .posture-report th, .posture-report td { padding: 2px 8px 2px 0; }
  .posture-report tr, .posture-report figure, .posture-report .figures { break-inside: avoid; }
  .posture-report thead { display: table-header-group; }
  .posture-report a { color: inherit; text-decoration: none; }
}
`
