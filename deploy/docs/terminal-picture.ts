/** Colors of text, background, prompt, and unapproved platforms. WCAG AA or better. */
const THEMES = {
  light: {
    background: '#ffffff',
    border: '#d0d7de',
    bar: '#f6f8fa',
    text: '#1f2328',
    lines: '#8c959f',
    mark: '#9a6700',
  },
  dark: {
    background: '#0d1117',
    border: '#30363d',
    bar: '#161b22',
    text: '#e6edf3',
    lines: '#6e7681',
    mark: '#d29922',
  },
} as const
export type Theme = keyof typeof THEMES

/**
 * In pixels. Any monospaced font is scaled to the width CHARACTER, so that box-drawing lines meet.
 */
const CHARACTER = 7.8
const LINE = 18
const MARGIN = 16
const BAR = 30
const BOX_LINES = /[─│┌┐└┘├┤┬┴┼]/

/**
 * An SVG of a terminal with `npm start` and its output, taken from the first sample output of
 * `page`.
 */
export function terminalPicture(page: string, theme: Theme): string {
  const [, output = ''] = /<!-- printed until .+ -->\n```text\n([\s\S]*?)```/.exec(page) ?? []
  const end = output.indexOf('\n\nThe same from the API')
  if (end < 0) throw new Error('no output of npm start')
  const lines = ['$ npm start', ...output.slice(0, end).split('\n')]
  const { background, border, bar, text, lines: boxes, mark } = THEMES[theme]
  const width = Math.ceil(Math.max(...lines.map((line) => line.length)) * CHARACTER + 2 * MARGIN)
  const height = lines.length * LINE + BAR + 2 * MARGIN
  const rows = lines.map((line, index) => row(line, BAR + MARGIN + (index + 1) * LINE - 5, { text, boxes, mark }))
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-labelledby="title">
<title id="title">A terminal: npm start lists the AI platforms that it found</title>
<rect x="0.5" y="0.5" width="${width - 1}" height="${height - 1}" rx="8" fill="${background}" stroke="${border}"/>
<path d="M0.5 ${BAR}V8.5a8 8 0 0 1 8-8H${width - 8.5}a8 8 0 0 1 8 8V${BAR}Z" fill="${bar}" stroke="${border}"/>
<g fill="${border}"><circle cx="20" cy="15" r="5"/><circle cx="38" cy="15" r="5"/><circle cx="56" cy="15" r="5"/></g>
<g font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace" font-size="13" xml:space="preserve">
${rows.join('\n')}
</g>
</svg>
`
}

function row(
  line: string,
  y: number,
  colors: { readonly text: string; readonly boxes: string; readonly mark: string },
): string {
  const runs = line.match(/[─│┌┐└┘├┤┬┴┼]+| {2,}|(?:[^─│┌┐└┘├┤┬┴┼ ]| (?! ))+/g) ?? []
  let column = 0
  return runs
    .map((run) => {
      const start = column
      column += run.length
      const shown = run.trim()
      if (shown === '') return ''
      const x = (MARGIN + (start + run.length - run.trimStart().length) * CHARACTER).toFixed(1)
      const color = BOX_LINES.test(run)
        ? colors.boxes
        : shown === 'no' || shown.startsWith('$')
          ? colors.mark
          : colors.text
      const length = (shown.length * CHARACTER).toFixed(1)
      return `<text x="${x}" y="${y}" fill="${color}" textLength="${length}" lengthAdjust="spacingAndGlyphs">${escaped(shown)}</text>`
    })
    .filter((text) => text !== '')
    .join('')
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}
