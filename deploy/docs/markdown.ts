/** A GitHub Markdown table. A column whose first cell is a number is aligned right. */
export function markdownTable(head: readonly string[], rows: readonly (readonly (string | number)[])[]): string {
  const line = (cells: readonly (string | number)[]): string =>
    `| ${cells.map((cell) => String(cell).replaceAll('|', '\\|')).join(' | ')} |`
  const rule = head.map((_, column) => (typeof rows[0]?.[column] === 'number' ? '---:' : '---'))
  return [line(head), line(rule), ...rows.map(line)].join('\n')
}

export function code(text: string | undefined): string {
  return text === undefined ? '' : `\`${text}\``
}

/** Indented, as all blocks of the documentation are that are no output. */
export function codeBlock(text: string): string {
  const lines = text.trimEnd().split('\n')
  return lines.map((line) => (line === '' ? '' : `    ${line}`)).join('\n')
}
