import { FORMATS, FormatDetector } from '../engine/formats/formats.ts'
import { LogLine, SCRATCH_BYTES, Verdict } from '../engine/formats/log-line.ts'
import { readUserAndBytes } from '../engine/formats/user-name.ts'
import { loadCatalog } from '../registry/catalog.ts'
import { compileTrie } from '../registry/compile-trie.ts'
import { DomainTrie, NO_MATCH } from '../registry/domain-trie.ts'
import { type Figure, inTurn, perSecond, type Size, same } from './harness.ts'
import { LINE_KINDS, type LineKind, linesOf } from './workload/log-lines.ts'

/**
 * Lines of each format on one core, from a source whose format is known: detected, parsed and
 * matched against the registry, with all formats in one process as in the service.
 */
const AIM = 500_000

export async function run(size: Size): Promise<Figure[]> {
  const [count, rounds, repeats] = size === 'toy' ? [100, 1, 1] : [2000, 7, 30]
  const trie = new DomainTrie(compileTrie(loadCatalog().rules))
  const workloads = LINE_KINDS.map((kind) => new Workload(kind, count, trie))
  // Runs all formats before measuring the first: a busy service has parsed them all, and V8
  // compiles for the types it has seen.
  for (const workload of workloads) workload.check()
  const figures: Figure[] = []
  for (const workload of workloads) {
    const figure = await inTurn(rounds, [{ name: 'ours', run: () => workload.linesPerSecond(repeats) }])
    figures.push({ what: workload.kind.name, unit: 'lines/s', ...figure, aim: { atLeast: AIM } })
  }
  return figures
}

class Workload {
  readonly kind: LineKind
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
    const header = Buffer.from(kind.header ?? '')
    this.#line = new LogLine(Buffer.concat([header, ...lines, Buffer.alloc(SCRATCH_BYTES)]))
    this.#line.referenceMs = Date.parse('2026-11-20T12:00:00Z')
    let at = header.length
    for (const { length } of lines) {
      this.#starts.push(at)
      at += length
    }
    this.#starts.push(at)
    if (header.length > 0) this.#detector.read(this.#line, 0, header.length)
    // A line of traffic names no host.
    this.#matches = /\{host\}|\{labels\}/.test(kind.line) ? count / 10 : 0
  }

  /** Checks that every line is parsed by its own format, and that lines with a platform match. */
  check(): void {
    const matches = this.#read()
    const found = { format: FORMATS[this.#detector.format]?.id, matches }
    same(this.kind.name, found, { format: this.kind.format, matches: this.#matches })
  }

  linesPerSecond(repeats: number): number {
    const start = performance.now()
    let matches = 0
    for (let time = 0; time < repeats; time++) matches += this.#read()
    const rate = perSecond((this.#starts.length - 1) * repeats, start)
    same(this.kind.name, matches, repeats * this.#matches)
    return rate
  }

  #read(): number {
    const line = this.#line
    let matches = 0
    for (let index = 0; index + 1 < this.#starts.length; index++) {
      const verdict = this.#detector.read(line, this.#starts[index] ?? 0, this.#starts[index + 1] ?? 0)
      if (verdict !== Verdict.event) continue
      if (this.#trie.matchDotted(line.view, line.hostStart, line.hostEnd) === NO_MATCH) continue
      matches++
      if (line.eventIdStart < 0) readUserAndBytes(line)
    }
    return matches
  }
}
