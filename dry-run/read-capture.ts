import { coverageOf } from '../collector/coverage.ts'
import { observeInline } from '../collector/pipeline/observe-inline.ts'
import type { ByteSource } from '../engine/process/byte-source.ts'
import type { Matcher } from '../registry/match.ts'
import type { CaptureReport } from './report.ts'
import { FileTally } from './tally.ts'

/** @throws Fault CAPTURE_FORMAT, CAPTURE_DAMAGED if the file has no valid beginning. */
export async function readCapture(
  source: ByteSource,
  matcher: Matcher,
): Promise<Omit<CaptureReport, 'compression' | 'bytes' | 'ended'>> {
  const tally = new FileTally(matcher)
  let matched = 0
  const { format, counts, damage } = await observeInline(source, ({ name, client, timeMs }) => {
    if (tally.add({ name, client, timeMs, count: 1 })) matched++
  })
  const coverage = { ...coverageOf({ observed: counts, live: undefined, link: undefined }), names_matched: matched }
  return { kind: 'capture', format, coverage, damage: damage ?? '', ...tally.found }
}
