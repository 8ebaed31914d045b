import { CR, LF } from './bytes.ts'
import { FORMATS } from './formats.ts'
import { type LogLine, Verdict } from './log-line.ts'

export const NO_FORMAT = -1

/**
 * Recognises and reads messages of all formats. What a source sent before is tried first, but by its own cue: a source that changes its
 * format, or mixes several, is read as well as any other.
 */
export class FormatDetector {
  /** The index in FORMATS of the message that was read last, or NO_FORMAT. */
  format = NO_FORMAT

  read(line: LogLine, start: number, messageEnd: number): Verdict {
    line.reset()
    const { memory } = line
    const end = withoutTrailer(line.view, start, messageEnd)
    const before = FORMATS[memory.format]
    if (before !== undefined && before.fallback !== true && before.detect(line, start, end)) {
      const verdict = before.parse(line, start, end)
      if (verdict !== Verdict.unknown) {
        this.format = memory.format
        return verdict
      }
      line.reset()
    }
    for (let index = 0; index < FORMATS.length; index++) {
      const format = FORMATS[index]
      if (format === undefined || !format.detect(line, start, end)) continue
      const verdict = format.parse(line, start, end)
      if (verdict === Verdict.unknown) {
        line.reset()
        continue
      }
      memory.format = index
      this.format = index
      return verdict
    }
    this.format = NO_FORMAT
    return Verdict.unknown
  }
}

/** Without the LF, CR LF or NUL that senders end a message with, whatever the framing (RFC 6587 §3.4). */
function withoutTrailer(view: DataView, start: number, end: number): number {
  while (end > start) {
    const byte = view.getUint8(end - 1)
    if (byte !== LF && byte !== CR && byte !== 0) break
    end--
  }
  return end
}
