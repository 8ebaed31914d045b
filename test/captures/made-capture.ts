import type { PacketClassName } from '../../collector/batch/packet-class.ts'
import { type CapturedFrame, type PcapFields, pcapFile } from '../support/packets-pcap.ts'

/** A name that must come out, as expect.json lists it. */
export interface ExpectedName {
  /** The frame, counted from zero, with which the name is complete; the number of frames when it comes out at the end of the file. */
  readonly frame: number
  readonly method: 'dns' | 'tls' | 'quic'
  readonly client: string
  readonly clientPort: number
  readonly server: string
  readonly serverPort: number
  readonly name: string
  /** The hello has encrypted_client_hello. */
  readonly ech?: true
  /** Where the case is about times: milliseconds since 1970. */
  readonly timeMs?: number
}

/** What expect.json holds: every name in order, the classes that are not empty, and the damage where the file has one. */
export interface Expectation {
  readonly names: readonly ExpectedName[]
  /** Left out when the case says nothing of classes. */
  readonly classes?: Partial<Record<PacketClassName, number>>
  /** The text of the fault behind the file's path. */
  readonly damage?: string
  /** tshark reads this capture otherwise, as the case's README.md says. */
  readonly tshark?: false
}

/** A packet with what its maker says of it: what the decoder must find is known before the decoder runs. */
export interface MadePacket extends CapturedFrame {
  readonly packetClass?: PacketClassName
  readonly names?: readonly Omit<ExpectedName, 'frame'>[]
}

export interface MadeCapture {
  readonly packets: readonly MadePacket[]
  readonly pcap?: PcapFields
  /** Writes the file where it is not pcap. */
  readonly write?: (packets: readonly MadePacket[]) => Buffer
  /** input.pcap when it is not given; .gz and .zst say that build.ts compresses it. */
  readonly file?:
    | 'input.pcap'
    | 'input.pcapng'
    | 'input.pcap.gz'
    | 'input.pcap.zst'
    | 'input.pcapng.gz'
    | 'input.pcapng.zst'
  /** Names of messages that no frame completes, in the order in which the end of the file brings them out. */
  readonly namesAtEnd?: readonly Omit<ExpectedName, 'frame'>[]
  /** Why the case is there and how it was made, in markdown. */
  readonly about: string
  /** Why tshark shows other names; without it its names are stored in tshark.json and compared. */
  readonly tsharkDiffers?: string
  /** Bytes of the file that are kept, and what must be said of the rest; packets behind that count for nothing. */
  readonly cut?: { readonly bytes: number; readonly damage: string; readonly wholePackets: number }
}

export function captureFile(capture: MadeCapture): string {
  return capture.file ?? 'input.pcap'
}

/** The file, not compressed yet. */
export function captureBytes(capture: MadeCapture): Buffer {
  const bytes = capture.write?.(capture.packets) ?? pcapFile(capture.packets, capture.pcap)
  return capture.cut === undefined ? bytes : bytes.subarray(0, capture.cut.bytes)
}

export function expectationOf(capture: MadeCapture): Expectation {
  const packets = capture.packets.slice(0, capture.cut?.wholePackets)
  const names = packets.flatMap((packet, frame) => (packet.names ?? []).map((name) => ({ frame, ...name })))
  const atEnd = (capture.namesAtEnd ?? []).map((name) => ({ frame: packets.length, ...name }))
  const classes = classesOf(packets)
  return {
    names: [...names, ...atEnd],
    ...(classes === undefined ? {} : { classes }),
    ...(capture.cut === undefined ? {} : { damage: capture.cut.damage }),
    ...(capture.tsharkDiffers === undefined ? {} : { tshark: false }),
  }
}

/** Undefined unless every packet has one. */
function classesOf(packets: readonly MadePacket[]): Expectation['classes'] {
  const classes: Partial<Record<PacketClassName, number>> = {}
  for (const { packetClass } of packets) {
    if (packetClass === undefined) return undefined
    classes[packetClass] = (classes[packetClass] ?? 0) + 1
  }
  return classes
}
