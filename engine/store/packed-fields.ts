import { endOfValue } from '../event/msgpack-walk.ts'
import { numberEnd, stringBytes, stringStart, wholeNumber } from '../event/packed-event.ts'

const FIXMAP = 0x8
const MAP_16 = 0xde

/** The MessagePack names of fields, so that keys are compared in place. */
export function fieldNames(names: readonly string[]): readonly Buffer[] {
  return names.map((name) => Buffer.from(name))
}

/**
 * Returns the strings and whole numbers of these fields of a packed map, in the order of `names`,
 * without unpacking the rest of the map. A third of the time of unpacking it, measured with records
 * of senders. undefined: not a map, or a field is missing or in a form that is not common.
 */
export function readFields(bytes: Buffer, names: readonly Buffer[]): (string | number)[] | undefined {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const end = bytes.length
  if (end < 3) return undefined
  const format = view.getUint8(0)
  const isLong = format === MAP_16
  if (!isLong && format >> 4 !== FIXMAP) return undefined
  const found = new Array<string | number>(names.length)
  let missing = names.length
  let at = isLong ? 3 : 1
  for (let pairs = isLong ? view.getUint16(1) : format & 0xf; pairs > 0 && missing > 0; pairs--) {
    const valueAt = endOfValue(view, at, end)
    if (valueAt === -1 || valueAt >= end) return undefined
    const index = indexOfKey(names, bytes, view, at, valueAt)
    if (index !== -1) {
      const value = numberEnd(view, valueAt, end) === -1 ? textAt(bytes, view, valueAt) : wholeNumber(view, valueAt)
      if (value === undefined || value === -1) return undefined
      found[index] = value
      missing--
    }
    at = endOfValue(view, valueAt, end)
    if (at === -1) return undefined
  }
  return missing === 0 ? found : undefined
}

/** The index of the name that is the key from `at` to `end`. -1: none of them. */
function indexOfKey(names: readonly Buffer[], bytes: Buffer, view: DataView, at: number, end: number): number {
  const start = stringStart(view, at)
  if (start === -1) return -1
  for (let index = 0; index < names.length; index++) {
    const name = names[index] as Buffer
    if (name.length !== end - start) continue
    let same = 0
    while (same < name.length && name[same] === bytes[start + same]) same++
    if (same === name.length) return index
  }
  return -1
}

/** undefined: not a common string that ends before the end. */
function textAt(bytes: Buffer, view: DataView, at: number): string | undefined {
  const start = stringStart(view, at)
  if (start === -1 || start > bytes.length) return undefined
  const end = start + stringBytes(view, at)
  return end > bytes.length ? undefined : bytes.toString('utf8', start, end)
}
