export function markdownTable(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string =>
    `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`
  return [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n')
}

export function code(text: string | undefined): string {
  return text === undefined ? '' : `\`${text}\``
}

/** Indented, as all blocks of the documentation are that are no output. */
export function codeBlock(text: string): string {
  const lines = text.trimEnd().split('\n')
  return lines.map((line) => (line === '' ? '' : `    ${line}`)).join('\n')
}
