import { jsonLines, run } from './programs.ts'

/** A row of `posture-collector read --names`. */
export interface NameRow {
  readonly client: string
  readonly method: string
  readonly name: string
  readonly via?: string
  readonly ech?: boolean
}

/** @throws Error with the output of a collector that fails. */
export async function nameRows(capture: string, ...options: string[]): Promise<readonly NameRow[]> {
  const { status, stdout, stderr } = await run('collector', ['read', '--names', ...options, capture])
  if (status !== 0) throw new Error(stderr)
  return jsonLines<NameRow>(stdout)
}

/** The lines that are in one list more often than in the other. */
export function differences(found: readonly string[], expected: readonly string[]): string[] {
  const counts = new Map<string, number>()
  for (const line of found) counts.set(line, (counts.get(line) ?? 0) + 1)
  for (const line of expected) counts.set(line, (counts.get(line) ?? 0) - 1)
  return [...counts]
    .filter(([, count]) => count !== 0)
    .map(([line, count]) => `${count > 0 ? 'extra' : 'missing'} ${line}`)
}
