/**
 * The harness of every benchmark. Contenders that do the same work run once, and their answers are
 * compared. Then they run in turn, so that a slow minute of the machine affects all. Output: the
 * ratio first, medians and spreads, and the checksum of the work, which no contender can skip.
 */
export interface Contender {
  readonly name: string
  readonly version: string
  /** Does the whole work once and returns its checksum. */
  run(): number
  /** Why this contender cannot do the same work. It is timed, but its answers are not compared. */
  readonly differs?: string
}

export interface Work {
  readonly name: string
  /** Work of one run: 262,144 of `unit`. */
  readonly units: number
  readonly unit: string
  readonly rounds: number
}

export interface Timing {
  readonly name: string
  /** Median time of one unit. */
  readonly ns: number
  /** Half the width of the middle 80 % of the rounds, as a fraction of the median. */
  readonly spread: number
}

/** The first contender is ours. Each other contender gets a line. @throws if answers differ. */
export function compare(work: Work, contenders: readonly Contender[]): Timing[] {
  const checksums = contenders.map((contender) => contender.run())
  const [ours, ...peers] = contenders
  if (ours === undefined) throw new Error('no contender')
  peers.forEach((peer, index) => {
    if (peer.differs !== undefined || checksums[index + 1] === checksums[0]) return
    throw new Error(`${work.name}: ${peer.name} answers ${checksums[index + 1]}, ${ours.name} ${checksums[0]}`)
  })
  const times = contenders.map(() => new Float64Array(work.rounds))
  for (let round = 0; round < work.rounds; round++) {
    contenders.forEach((contender, index) => {
      const start = process.hrtime.bigint()
      const checksum = contender.run()
      const time = Number(process.hrtime.bigint() - start)
      if (checksum !== checksums[index])
        throw new Error(`${work.name}: ${contender.name} answers differently the second time`)
      const column = times[index]
      if (column !== undefined) column[round] = time / work.units
    })
  }
  const timings = contenders.map(({ name }, index) => timingOf(name, times[index] ?? new Float64Array(1)))
  report(work, contenders, timings, checksums[0] ?? 0)
  return timings
}

function timingOf(name: string, times: Float64Array): Timing {
  const sorted = times.toSorted()
  const at = (part: number) => sorted[Math.min(sorted.length - 1, Math.floor(part * sorted.length))] ?? 0
  const ns = at(0.5)
  return { name, ns, spread: ns === 0 ? 0 : (at(0.9) - at(0.1)) / 2 / ns }
}

function report(work: Work, contenders: readonly Contender[], timings: readonly Timing[], checksum: number): void {
  const [ours, ...peers] = timings
  if (ours === undefined) return
  const own = `${ours.ns.toFixed(1)} ns ±${percent(ours.spread)}`
  if (peers.length === 0) print(`${work.name}  ${own} a ${work.unit}  checksum ${checksum}`)
  peers.forEach((peer, index) => {
    const contender = contenders[index + 1]
    const ratio = `${(ours.ns / peer.ns).toFixed(2)}x ${peer.name} ${contender?.version ?? ''}`
    const answers = contender?.differs === undefined ? 'answers equal' : contender.differs
    print(
      `${work.name}  ${ratio}  (${own} | ${peer.ns.toFixed(1)} ns ±${percent(peer.spread)} a ${work.unit})  ${answers}  checksum ${checksum}`,
    )
  })
}

const percent = (part: number): string => `${Math.round(part * 100)}%`

export function print(line: string): void {
  process.stdout.write(`${line}\n`)
}

/** The middle value; the upper one of two if the number is even. */
export function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0
}

/** The value below which this part of the values is. */
export function percentile(values: readonly number[], part: number): number {
  return values.toSorted((a, b) => a - b)[Math.min(values.length - 1, Math.floor(values.length * part))] ?? 0
}

/** A whole number with thousands separators. */
export const shown = (value: number): string => Math.round(value).toLocaleString('en')
export const aimText = (reached: boolean): string => (reached ? 'reached' : 'not reached')
export const ratio = (value: number): string => `${value.toFixed(2)}x`
