import { FoundName, NameForm } from '../../collector/decode/name.ts'
import { type Method, RowSource, writeRow } from '../../collector/decode/name-rows.ts'
import { addressBytes } from './packets.ts'

export interface Match {
  readonly name: string
  readonly client: string
  readonly method: Method
  readonly timeMs: number
  /** Default 0. */
  readonly rule?: number
}

/** The row of a match, in memory that held other bytes before. */
export function rowOf({ name, client, method, timeMs, rule = 0 }: Match): DataView {
  const view = new DataView(Buffer.alloc(2048, 0xee).buffer)
  const source = new RowSource()
  const six = client.includes(':')
  const addresses = Buffer.alloc(32)
  const bytes = addressBytes(client)
  bytes.copy(addresses)
  source.addresses = new DataView(addresses.buffer, addresses.byteOffset)
  source.version = six ? 6 : 4
  source.addressBytes = six ? 16 : 4
  source.server = source.addressBytes
  source.seconds = Math.floor(timeMs / 1000)
  source.nanoseconds = (timeMs % 1000) * 1e6
  source.method = method
  const dotted = Buffer.from(name, 'latin1')
  const found = new FoundName(new DataView(dotted.buffer, dotted.byteOffset, dotted.length))
  found.set(new DataView(dotted.buffer, dotted.byteOffset, dotted.length), 0, dotted.length, NameForm.dotted)
  writeRow(view, 0, source, found, rule)
  return view
}
