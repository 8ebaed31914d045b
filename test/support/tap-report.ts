import { inspect } from 'node:util'
import { type FinalResults, Parser, type Result } from 'tap-parser'

/** Counts the results of one test file's TAP output. Only assertions count, not subtests. */
export class TapReport {
  passed = 0
  failed = 0
  /** Full name and reason of each skipped test. */
  readonly skipped: string[] = []
  /** Full name and diagnostics of each failed assertion. */
  readonly failures: string[] = []
  readonly #parser = new Parser()

  constructor() {
    this.#watch(this.#parser)
  }

  write(chunk: Uint8Array): void {
    this.#parser.write(chunk)
  }

  /** Ends the output. Incomplete TAP becomes a failure. */
  end(): void {
    this.#parser.end()
  }

  #watch(parser: Parser): void {
    parser.on('child', (child: Parser) => this.#watch(child))
    parser.on('assert', (result: Result) => this.#count(result))
    parser.on('complete', (results: FinalResults) => {
      for (const failure of results.failures) {
        if (!('tapError' in failure) || failure.tapError === null) continue
        this.failed++
        this.failures.push(`${parser.fullname}: ${failure.tapError}`)
      }
    })
    parser.on('bailout', (reason: string) => {
      this.failed++
      this.failures.push(`${parser.fullname}: bail out: ${reason}`)
    })
  }

  #count(result: Result): void {
    if (result.skip !== false) this.skipped.push(`${result.fullname}: ${result.skip}`)
    else if (result.closingTestPoint) return
    else if (result.ok || result.todo !== false) this.passed++
    else {
      this.failed++
      this.failures.push(`${result.fullname}\n${diagnosticsOf(result)}`)
    }
  }
}

function diagnosticsOf({ diag }: Result): string {
  if (diag === null) return ''
  const { diff, source, stack, at, ...others } = diag as Record<string, unknown>
  const parts = [diff, source, typeof stack === 'string' ? stack : undefined]
  const place = at as { fileName?: string; lineNumber?: number } | undefined
  return [
    ...(place?.fileName === undefined ? [] : [`at ${place.fileName}:${place.lineNumber}`]),
    ...Object.entries(others).map(([key, value]) => `${key}: ${typeof value === 'string' ? value : inspect(value)}`),
    ...parts.filter((part) => typeof part === 'string').map((part) => part.trimEnd()),
  ].join('\n')
}
