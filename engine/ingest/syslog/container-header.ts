import { HYPHEN, OPEN_BRACE, SPACE, TAB, textAt } from '../../formats/bytes.ts'
import type { SyslogMessage } from './message.ts'

/** `2026-11-20T09:15:02` with at most nine digits of a second and a zone. */
const TIME_BYTES_MIN = 20
const TIME_BYTES_MAX = 36
const TAG_BYTES_MAX = 256
const LETTER_T = 0x54

/**
 * The offset of the message after the header of a container runtime or of a forwarder's file, or
 * `start` if there is none:
 *
 *   2026-11-20T09:15:02.123456789Z stdout F MSG    Kubernetes, CRI logging format
 *   2026-11-20T09:15:02+00:00<TAB>TAG<TAB>{MSG}    Fluentd, out_file
 *
 * https://github.com/kubernetes/design-proposals-archive/blob/main/node/kubelet-cri-logging.md
 * https://docs.fluentd.org/formatter/out_file
 */
export function containerHeaderEnd(view: DataView, start: number, end: number, message: SyslogMessage): number {
  if (start + TIME_BYTES_MIN >= end || view.getUint8(start + 4) !== HYPHEN || view.getUint8(start + 10) !== LETTER_T)
    return start
  let at = start + 11
  const limit = Math.min(end, start + TIME_BYTES_MAX)
  while (at < limit && view.getUint8(at) > SPACE) at++
  const after = view.getUint8(at) === TAB ? tagEnd(view, at, end) : streamEnd(view, at, end)
  if (after === at) return start
  message.timeStart = start
  message.timeEnd = at
  return after
}

/** After ` stdout F `, or `at`. */
function streamEnd(view: DataView, at: number, end: number): number {
  if (!textAt(view, at, end, ' stdout ') && !textAt(view, at, end, ' stderr ')) return at
  const isWhole = textAt(view, at + 8, end, 'F ')
  return isWhole || textAt(view, at + 8, end, 'P ') ? at + 10 : at
}

/** After a tag between tabs, if an object follows, or `at`. */
function tagEnd(view: DataView, at: number, end: number): number {
  const limit = Math.min(end - 1, at + TAG_BYTES_MAX)
  let tab = at + 1
  while (tab < limit && view.getUint8(tab) > SPACE) tab++
  return tab < limit && view.getUint8(tab) === TAB && view.getUint8(tab + 1) === OPEN_BRACE ? tab + 1 : at
}
