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

/** A fenced code block: `sh` for commands, `text` for output. */
export function codeBlock(language: string, text: string): string {
  return `\`\`\`${language}\n${text.trimEnd()}\n\`\`\``
}
