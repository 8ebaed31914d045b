import type { PacketClassName } from '../../collector/decode/packet-class.ts'
import { type CapturedFrame, type PcapFields, pcapFile } from '../support/packets-pcap.ts'

/** A name that must come out, as expect.json lists it. */
export interface ExpectedName {
  readonly frame: number
  readonly method: 'dns' | 'tls' | 'quic'
  readonly client: string
  readonly clientPort: number
  readonly server: string
  readonly serverPort: number
  readonly name: string
}

/** What expect.json holds: every name in order, the classes that are not empty, and the damage where the file has one. */
export interface Expectation {
  readonly names: readonly ExpectedName[]
  readonly classes: Partial<Record<PacketClassName, number>>
  /** The text of the fault behind the file's path. */
  readonly damage?: string
}

/** A packet with what its maker says of it: what the decoder must find is known before the decoder runs. */
export interface MadePacket extends CapturedFrame {
  readonly packetClass: PacketClassName
  readonly names?: readonly Omit<ExpectedName, 'frame'>[]
}

export interface MadeCapture {
  readonly packets: readonly MadePacket[]
  readonly pcap?: PcapFields
  /** Why the case is there and how it was made, in markdown. */
  readonly about: string
  /** Bytes of the file that are kept, and what must be said of the rest; packets behind that count for nothing. */
  readonly cut?: { readonly bytes: number; readonly damage: string; readonly wholePackets: number }
}

export function captureBytes(capture: MadeCapture): Buffer {
  const bytes = pcapFile(capture.packets, capture.pcap)
  return capture.cut === undefined ? bytes : bytes.subarray(0, capture.cut.bytes)
}

export function expectationOf(capture: MadeCapture): Expectation {
  const packets = capture.packets.slice(0, capture.cut?.wholePackets)
  const classes: Partial<Record<PacketClassName, number>> = {}
  for (const { packetClass } of packets) classes[packetClass] = (classes[packetClass] ?? 0) + 1
  const names = packets.flatMap((packet, frame) => (packet.names ?? []).map((name) => ({ frame, ...name })))
  return { names, classes, ...(capture.cut === undefined ? {} : { damage: capture.cut.damage }) }
}
