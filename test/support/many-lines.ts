import { squid } from './syslog-service.ts'

/** Generates log files of any size. */
export const NOW = Date.parse('2026-11-20T12:00:00Z')

/** A line with a matching host, from one of many clients. */
export const matching = (index: number): string => squid('claude.ai', `10.0.${(index >> 8) & 255}.${index & 255}`, NOW)
export const other = (index: number): string => squid('www.example.com', `10.0.0.${index & 255}`, NOW)

/** About the given number of megabytes. Every other line matches. */
export function manyLines(megabytes: number): { text: string; lines: number; matching: number } {
  const lines: string[] = []
  for (let bytes = 0; bytes < megabytes * 1024 * 1024; ) {
    const index = lines.length
    const line = index % 2 === 0 ? matching(index) : other(index)
    lines.push(line)
    bytes += line.length + 1
  }
  return { text: `${lines.join('\n')}\n`, lines: lines.length, matching: Math.ceil(lines.length / 2) }
}
