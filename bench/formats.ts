import { FORMATS, FormatDetector } from '../engine/formats/formats.ts'
import { LogLine, SCRATCH_BYTES, Verdict } from '../engine/formats/log-line.ts'
import { loadCatalog } from '../registry/catalog.ts'
import { compileTrie } from '../registry/compile-trie.ts'
import { DomainTrie, NO_MATCH } from '../registry/domain-trie.ts'
import { median, print } from './compare.ts'
import { HEADER_LINES, LINE_KINDS, type LineKind, linesOf } from './workload/log-lines.ts'

/**
 * Lines of each format on one core: detected, parsed and matched against the registry, with all
 * formats in one process as in the service. For comparison, the minimum that JavaScript needs for a
 * line otherwise: create a string and split it into fields.
 */
const AIM = 500_000

interface Measured {
  readonly ours: number
  readonly fresh: number
  readonly split: number
}

export function everyFormat({ toy }: { toy: boolean }): void {
  const count = toy ? 100 : 2000
  const rounds = toy ? 1 : 7
  const repeats = toy ? 1 : 30
  const trie = new DomainTrie(compileTrie(loadCatalog().rules))
  const workloads = LINE_KINDS.map((kind) => new Workload(kind, count, trie))
  // Runs all formats before measuring the first: a busy service has parsed them all, and V8
  // compiles for the types it has seen.
  for (const workload of workloads) workload.check()
  const measured = workloads.map(() => [] as Measured[])
  for (let round = 0; round < rounds; round++) {
    for (const [index, workload] of workloads.entries()) measured[index]?.push(workload.measure(repeats))
  }
  print(
    `formats: lines/s on one core, recognized, read and matched (1 of 10 matches); of a source whose format is known, and of one that is new; medians of ${rounds} rounds in turns; aim ${AIM.toLocaleString('en')}`,
  )
  for (const [index, { kind, bytesEach }] of workloads.entries()) {
    const rates = measured[index] ?? []
    const ours = median(rates.map((rate) => rate.ours))
    const split = median(rates.map((rate) => rate.split))
    const fresh = median(rates.map((rate) => rate.fresh))
    print(
      `${kind.name.padEnd(34)} ${(ours / split).toFixed(2)}x splitting strings  ${thousands(ours)} k/s known, ${thousands(fresh)} k/s new | ${thousands(split)} k/s  ${bytesEach} bytes${ours >= AIM ? '' : '  below the aim'}`,
    )
  }
}

class Workload {
  readonly kind: LineKind
  readonly bytesEach: number
  readonly #trie: DomainTrie
  readonly #line: LogLine
  readonly #detector = new FormatDetector()
  /** Offset of each line in the buffer, then the end of the last. */
  readonly #starts: number[] = []
  readonly #matches: number

  constructor(kind: LineKind, count: number, trie: DomainTrie) {
    this.kind = kind
    this.#trie = trie
    const lines = linesOf(kind, count).map((line) => Buffer.from(line))
    const header = Buffer.from(HEADER_LINES[kind.format] ?? '')
    const bytes = Buffer.concat([header, ...lines, Buffer.alloc(SCRATCH_BYTES)])
    this.#line = new LogLine(bytes)
    this.#line.referenceMs = Date.parse('2026-11-20T12:00:00Z')
    let at = header.length
    for (const { length } of lines) {
      this.#starts.push(at)
      at += length
    }
    this.#starts.push(at)
    this.bytesEach = Math.round((at - header.length) / count)
    if (header.length > 0) this.#detector.read(this.#line, 0, header.length)
    this.#matches = count / 10
  }

  /** Checks that every line is parsed by its own format, and that lines with a platform match. */
  check(): void {
    const names = this.kind.line.includes('{host}') || this.kind.line.includes('{labels}')
    const matches = this.#read(false)
    const format = FORMATS[this.#detector.format]?.id
    if (format !== this.kind.format || (names && matches !== this.#matches)) {
      throw new Error(`${this.kind.name}: read as ${format}, ${matches} matches, expected ${this.#matches}`)
    }
  }

  measure(repeats: number): Measured {
    const lines = (this.#starts.length - 1) * repeats
    return {
      ours: lines / seconds(() => repeat(repeats, () => this.#read(false))),
      fresh: lines / seconds(() => repeat(repeats, () => this.#read(true))),
      split: lines / seconds(() => repeat(repeats, () => this.#split())),
    }
  }

  #read(isNew: boolean): number {
    const line = this.#line
    const { memory } = line
    let matches = 0
    for (let index = 0; index + 1 < this.#starts.length; index++) {
      // A table's source sends the header first. Without the header, no line has that format.
      if (isNew) memory.format = -1
      const verdict = this.#detector.read(line, this.#starts[index] ?? 0, this.#starts[index + 1] ?? 0)
      if (verdict === Verdict.event && this.#trie.matchDotted(line.view, line.hostStart, line.hostEnd) !== NO_MATCH) {
        matches++
      }
    }
    return matches
  }

  #split(): number {
    const { buffer, byteOffset } = this.#line.bytes
    let fields = 0
    for (let index = 0; index + 1 < this.#starts.length; index++) {
      const start = this.#starts[index] ?? 0
      const text = Buffer.from(buffer, byteOffset + start, (this.#starts[index + 1] ?? 0) - start).toString('latin1')
      fields += text.split(this.kind.separator).length
    }
    return fields
  }
}

/** Sums the results, so that V8 cannot eliminate the work. */
function repeat(times: number, work: () => number): number {
  let sum = 0
  for (let time = 0; time < times; time++) sum += work()
  return sum
}

function seconds(work: () => number): number {
  const start = performance.now()
  if (work() < 0) throw new Error('nothing was done')
  return (performance.now() - start) / 1000
}

function thousands(rate: number): string {
  return Math.round(rate / 1000).toLocaleString('en')
}
