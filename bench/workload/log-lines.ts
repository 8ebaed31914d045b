import { readFileSync } from 'node:fs'
import { parse } from 'yaml'

/**
 * A line of a format as its vendor writes it, with placeholders for the parts that differ from line
 * to line: {host} or {labels}, {client}, {n}.
 */
export interface LineKind {
  readonly name: string
  /** The format that parses the line. */
  readonly format: string
  /** The line that a source sends before its lines, if the format needs one. */
  readonly header?: string
  readonly line: string
}

const FILE = new URL('../../../bench/workload/log-lines.yaml', import.meta.url)
export const LINE_KINDS = parse(readFileSync(FILE, 'utf8')) as readonly LineKind[]

/** `count` lines of a kind. Every tenth names a platform. */
export function linesOf({ line }: LineKind, count: number): string[] {
  return Array.from({ length: count }, (_, index) => {
    const host = index % 10 === 0 ? 'api.openai.com' : `site${index % 40}.news${index % 7}.example.com`
    const labels = host.split('.').map((label) => `(${label.length})${label}`)
    return line
      .replaceAll('{host}', host)
      .replaceAll('{labels}', `${labels.join('')}(0)`)
      .replaceAll('{client}', `192.0.2.${1 + (index % 250)}`)
      .replaceAll('{n}', String(10_000 + (index % 80_000)))
  })
}
