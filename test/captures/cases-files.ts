import { ethernet, type NetworkPacket } from '../support/packets.ts'
import { LinkType, linuxCooked } from '../support/packets-link.ts'
import type { PcapFields } from '../support/packets-pcap.ts'
import { type PcapngInterface, PcapngWriter, type TimeResolution } from '../support/packets-pcapng.ts'
import type { GeneratedCapture, GeneratedPacket } from './generated-capture.ts'
import { everyMillisecond, helloFor, queryFor, START_MS } from './parties.ts'

const frameOf = (packet: NetworkPacket) => ethernet({}, packet)

export function fileCases(): Record<string, GeneratedCapture> {
  return {
    'pcap-big-endian': pcap('A pcap file from a big-endian machine.', { bigEndian: true }),
    'pcap-nanoseconds': pcap('A pcap file with nanoseconds (magic a1b23c4d).', { nanoseconds: true }),
    'pcap-nanoseconds-big-endian': pcap('A pcap file with nanoseconds from a big-endian machine.', {
      nanoseconds: true,
      bigEndian: true,
    }),
    'pcap-modified': pcap('The variant with longer record headers (magic a1b2cd34).', { modified: true }),
    'pcap-modified-big-endian': pcap('The variant with longer record headers from a big-endian machine.', {
      modified: true,
      bigEndian: true,
    }),
    'pcap-version-2-2': pcap('Version 2.2 of the format, which has the two lengths of a record in reverse order.', {
      version: [2, 2],
      swappedLengths: true,
    }),
    'pcap-version-2-3-swapped': pcap(
      'Version 2.3 of the format, which some programs wrote with the lengths in reverse order.',
      {
        version: [2, 3],
        swappedLengths: true,
      },
    ),
    'pcap-gzip': { ...pcap('A pcap file compressed with gzip.'), file: 'input.pcap.gz' },
    'pcap-zstd': { ...pcap('A pcap file compressed with zstd.'), file: 'input.pcap.zst' },
    'pcapng-interfaces': pcapngInterfaces(),
    'pcapng-blocks': pcapngBlocks(),
    'pcapng-sections': pcapngSections(),
    'pcapng-times': pcapngTimes(),
    'pcapng-picoseconds': pcapngPicoseconds(),
    'pcapng-simple-packets': pcapngSimplePackets(),
    'pcapng-gzip': { ...pcapngBlocks(), file: 'input.pcapng.gz' },
    'pcapng-zstd': { ...pcapngBlocks(), file: 'input.pcapng.zst' },
  }
}

/** A query and a hello with their times. The capture omits the last four bytes of each frame. */
function messages(label: string, clientPort = 50_001): GeneratedPacket[] {
  return [queryFor(`query.${label}.example.org`), helloFor(`hello.${label}.example.net`, clientPort)].map(
    ({ packet, reported }, index) => {
      const bytes = frameOf(packet)
      // All resolutions except 10^0 and 10^-1 can represent a quarter of a second.
      const timeMs = START_MS + 1000 * index + 250
      return { bytes, originalBytes: bytes.length + 4, timeMs, names: [{ ...reported, timeMs }] }
    },
  )
}

function pcap(about: string, fields: PcapFields = {}): GeneratedCapture {
  return { about: `${about}\n`, packets: messages('pcap'), pcap: fields }
}

function pcapngInterfaces(): GeneratedCapture {
  const query = queryFor('query.cooked.example.org')
  const packets = everyMillisecond([
    {
      bytes: frameOf(queryFor('query.ethernet.example.org').packet),
      names: [queryFor('query.ethernet.example.org').reported],
    },
    { bytes: linuxCooked(query.packet).bytes, names: [query.reported] },
    { bytes: query.packet.bytes, names: [query.reported] },
    // LINKTYPE_USER0, which the collector does not read.
    { bytes: query.packet.bytes },
  ])
  const linkTypes = [LinkType.ethernet, LinkType.linuxCooked, LinkType.raw, 147]
  return {
    about:
      'A pcapng file with one interface for each of several link types. The third interface follows the first packets. The last link type is not read.\n',
    packets,
    file: 'input.pcapng',
    write: () => {
      const file = new PcapngWriter().section()
      for (const [interfaceId, linkType] of linkTypes.slice(0, 2).entries())
        file.interface({ linkType, name: `eth${interfaceId}` })
      for (const [interfaceId, { bytes, timeMs }] of packets.entries()) {
        if (interfaceId >= 2) file.interface({ linkType: linkTypes[interfaceId] as number, snaplen: 65_535 })
        file.enhanced(bytes, { interfaceId, timeMs })
      }
      return file.bytes()
    },
  }
}

function pcapngBlocks(): GeneratedCapture {
  return {
    about:
      'A pcapng file with many block types: enhanced, obsolete and unknown blocks, comments, name resolution, statistics, secrets, custom blocks.\n',
    packets: [...messages('enhanced'), ...messages('obsolete', 50_002)],
    file: 'input.pcapng',
    write: (packets) => {
      const file = new PcapngWriter()
        .section({ comment: 'made by hand' })
        .interface({ comment: 'the only one', name: 'eth0', snaplen: 262_144 })
        .nameResolution([203, 0, 113, 9], 'server.example.org')
        .block(0x0000_0bcd, Buffer.alloc(8))
        .decryptionSecrets('CLIENT_RANDOM 00 00\n')
      for (const [index, { bytes, originalBytes, timeMs }] of packets.entries()) {
        const fields = { timeMs, comment: `packet ${index}`, ...(originalBytes === undefined ? {} : { originalBytes }) }
        if (index < 2) file.enhanced(bytes, fields)
        else file.obsolete(bytes, fields)
        file.custom(Buffer.from('of nobody'), index % 2 === 0)
      }
      return file.statistics(0, START_MS + 5000).bytes()
    },
  }
}

function pcapngSections(): GeneratedCapture {
  return {
    about:
      'Three sections in one pcapng file: little-endian, big-endian, little-endian. The numbers of the interfaces restart in each.\n',
    packets: [...messages('first'), ...messages('second', 50_002), ...messages('third', 50_003)],
    file: 'input.pcapng',
    write: (packets) => {
      const file = new PcapngWriter()
      for (const [section, bigEndian] of [false, true, false].entries()) {
        file.section({ bigEndian })
        // The packets are on the second interface, whose resolution differs in each section.
        file.interface({ linkType: LinkType.raw }).interface({ resolution: { ten: 3 * (section + 1) } })
        for (const { bytes, timeMs } of packets.slice(2 * section, 2 * section + 2)) {
          file.enhanced(bytes, { interfaceId: 1, timeMs })
        }
      }
      return file.bytes()
    },
  }
}

const RESOLUTIONS: readonly TimeResolution[] = [{ ten: 3 }, { ten: 6 }, { ten: 9 }, { two: 10 }, { two: 20 }]

function pcapngTimes(): GeneratedCapture {
  return pcapngInterfaceTimes(
    'Times in several resolutions of if_tsresol (10^-3 to 10^-9, 2^-10, 2^-20), without if_tsresol, and with a positive or negative if_tsoffset.',
    [
      ...RESOLUTIONS.map((resolution) => ({ resolution })),
      {},
      { resolution: { ten: 3 }, offsetSeconds: START_MS / 1000 - 100 },
      { resolution: { two: 20 }, offsetSeconds: 3600 },
      { offsetSeconds: -3600 },
    ],
  )
}

function pcapngPicoseconds(): GeneratedCapture {
  // Picoseconds since 1970 do not fit into 64 bits.
  const capture = pcapngInterfaceTimes('Times in picoseconds, with an if_tsoffset shortly before the packet.', [
    { resolution: { ten: 12 }, offsetSeconds: START_MS / 1000 - 100 },
  ])
  return { ...capture, tsharkDiffers: "tshark's numbers overflow at this resolution (as of version 4.0)." }
}

/** One query on each interface. */
function pcapngInterfaceTimes(about: string, interfaces: readonly PcapngInterface[]): GeneratedCapture {
  return {
    about: `${about}\n`,
    packets: interfaces.map((_, index) => {
      const { packet, reported } = queryFor(`interface-${index}.example.org`)
      const timeMs = START_MS + 1000 * index + 250
      return { bytes: frameOf(packet), timeMs, names: [{ ...reported, timeMs }] }
    }),
    file: 'input.pcapng',
    write: (packets) => {
      const file = new PcapngWriter().section()
      for (const fields of interfaces) file.interface(fields)
      for (const [interfaceId, { bytes, timeMs }] of packets.entries()) file.enhanced(bytes, { interfaceId, timeMs })
      return file.bytes()
    },
  }
}

function pcapngSimplePackets(): GeneratedCapture {
  const { packet, reported } = queryFor('simple.example.org')
  // The snaplen truncates the padding after the query.
  const bytes = Buffer.concat([frameOf(packet), Buffer.alloc(40)])
  const snaplen = bytes.length - 21
  return {
    about: 'Simple packet blocks: no time, no interface, truncated to the snaplen of the first interface.\n',
    packets: everyMillisecond([
      { bytes, names: [reported] },
      { bytes: frameOf(packet), names: [reported] },
    ]),
    file: 'input.pcapng',
    write: (packets) => {
      const file = new PcapngWriter().section().interface({ snaplen })
      for (const { bytes } of packets) file.simple(bytes)
      return file.bytes()
    },
  }
}
