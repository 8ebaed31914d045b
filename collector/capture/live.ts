import { createRequire } from 'node:module'
import { Fault } from '../../engine/process/error-codes.ts'
import { LIVE_FLUSH_MS, LIVE_IDLE_MS, LIVE_RING_BYTES, LIVE_SNAPLEN_BYTES, SNAPLEN_BYTES_MAX } from '../limits.ts'
import type { BatchPool } from './batch-pool.ts'
import { captureFilter, carriesVlan } from './bpf.ts'
import { noSuchInterface } from './interfaces.ts'
import type { RoundFiller } from './round.ts'

/**
 * Live capture with libpcap. Runs in the capture thread, which does nothing else, and blocks it.
 *
 * The pcap package's own session object watches the socket by a libuv handle that it never closes; a thread that ends with such a handle
 * aborts the process. So its addon is used without: this thread empties the ring, sleeps LIVE_IDLE_MS and looks again.
 */

/** The part of the addon that is used. Its own typings bring an @types/node of long ago with them. */
interface PcapAddon {
  PcapSession: new () => PcapSession
}
interface PcapSession {
  open_live(
    device: string,
    filter: string,
    ringBytes: number,
    snaplenBytes: number,
    dumpFile: string,
    onPacket: () => void,
    monitorMode: boolean,
    timeoutMs: number,
    onWarning: (text: string) => void,
    promiscuous: boolean,
  ): string
  /** Calls onPacket for each packet until the ring is empty, the packet in `bytes` and its header in `header`. -1 at a fault, -2 when closed. */
  dispatch(bytes: Buffer, header: Buffer): number
  stats(): { ps_recv: number; ps_drop: number; ps_ifdrop: number }
  close(): void
}

export interface LiveOptions {
  readonly name: string
  readonly snaplenBytes?: number
  readonly ringBytes?: number
  readonly promiscuous?: boolean
  /** Instead of the filter that bpf.ts makes. */
  readonly filter?: string
}

/** What the addon writes of struct pcap_pkthdr, in the byte order of the machine: two u32 of time and two of length. */
const HEADER_BYTES = 16
const STATS_MS = 1000

const machineLittleEndian = new Uint8Array(new Uint32Array([1]).buffer)[0] === 1

export class LiveCapture {
  readonly linkType: number
  readonly #name: string
  readonly #session: PcapSession
  readonly #bytes: Buffer
  readonly #header = Buffer.alloc(HEADER_BYTES)
  #onPacket: () => void = () => {}

  /** Opens the interface. Throws a Fault that says what to do. */
  constructor(options: LiveOptions, dnsPorts: readonly number[], tlsPorts: readonly number[]) {
    const snaplen = Math.min(options.snaplenBytes ?? LIVE_SNAPLEN_BYTES, SNAPLEN_BYTES_MAX)
    const filter = options.filter ?? captureFilter(dnsPorts, tlsPorts, carriesVlan(options.name))
    this.#name = options.name
    this.#bytes = Buffer.alloc(snaplen)
    try {
      this.#session = new (loadAddon().PcapSession)()
      const linkType = this.#session.open_live(
        options.name,
        filter,
        options.ringBytes ?? LIVE_RING_BYTES,
        snaplen,
        '',
        () => this.#onPacket(),
        false,
        LIVE_FLUSH_MS,
        // The one warning there is: the interface has no IPv4 address. That is common, and nothing depends on it.
        () => {},
        options.promiscuous ?? false,
      )
      this.linkType = linkTypeNumber(linkType)
    } catch (error) {
      throw openingFault(options.name, filter, error as Error)
    }
  }

  /** Captures into the rounds until the pool is stopped. The Fault that ended it, if one did. */
  run(pool: BatchPool, filler: RoundFiller): Fault | undefined {
    const header = new DataView(this.#header.buffer, this.#header.byteOffset, HEADER_BYTES)
    const bytes = this.#bytes
    const linkType = this.linkType
    const session = this.#session
    let roundStartMs = 0
    let closed = false

    // Called once a packet. dispatch() does not return while packets flow, so flushing and stopping are seen to here too.
    this.#onPacket = () => {
      if (closed) return
      const seconds = header.getUint32(0, machineLittleEndian)
      const microseconds = header.getUint32(4, machineLittleEndian)
      const captured = Math.min(header.getUint32(8, machineLittleEndian), bytes.length)
      filler.put(bytes, captured, seconds, microseconds * 1000, linkType)
      const nowMs = seconds * 1000 + microseconds / 1000
      if (filler.frames <= 1) roundStartMs = nowMs
      // A clock that was set back flushes too.
      if (nowMs - roundStartMs < LIVE_FLUSH_MS && nowMs >= roundStartMs) return
      roundStartMs = nowMs
      filler.flush(0)
      if (pool.stopped) {
        closed = true
        session.close()
      }
    }

    let statsMs = 0
    for (;;) {
      const outcome = session.dispatch(this.#bytes, this.#header)
      const nowMs = Date.now()
      if (filler.frames > 0 && (nowMs - roundStartMs >= LIVE_FLUSH_MS || nowMs < roundStartMs)) filler.flush(0)
      if (outcome === -1) {
        this.#close()
        return new Fault('CAPTURE_LOST', `${this.#name}: the interface went down or away while it was being watched`)
      }
      if (closed) return undefined
      if (nowMs - statsMs >= STATS_MS || nowMs < statsMs) {
        statsMs = nowMs
        this.#readStats(pool)
        // On a quiet link the lanes learn from this that what they wait for does not come.
        if (filler.frames === 0) filler.tick(Math.floor(nowMs / 1000))
      }
      if (pool.stopped) {
        this.#readStats(pool)
        this.#close()
        return undefined
      }
      pool.pause(LIVE_IDLE_MS)
    }
  }

  #readStats(pool: BatchPool): void {
    const stats = this.#session.stats()
    pool.setCaptureDrops(stats.ps_drop, stats.ps_ifdrop)
  }

  /** close() only asks; the dispatch() after it closes, when there is a packet. */
  #close(): void {
    this.#onPacket = () => {}
    this.#session.close()
    this.#session.dispatch(this.#bytes, this.#header)
  }
}

function loadAddon(): PcapAddon {
  return createRequire(import.meta.url)('pcap/build/Release/pcap_binding.node') as PcapAddon
}

/** The addon names four link types and gives the number of the others in a sentence; names and numbers are those of libpcap's DLT_. */
function linkTypeNumber(answer: string): number {
  const known: Record<string, number> = {
    LINKTYPE_NULL: 0,
    LINKTYPE_ETHERNET: 1,
    LINKTYPE_IEEE802_11_RADIO: 127,
    LINKTYPE_RAW: 101,
    LINKTYPE_LINUX_SLL: 113,
  }
  return known[answer] ?? Number(answer.replace(/\D/g, ''))
}

function openingFault(name: string, filter: string, error: Error): Error {
  const text = error.message
  if (/no such device|doesn't exist/i.test(text)) {
    return new Fault('CAPTURE_DENIED', noSuchInterface(name), { cause: error })
  }
  if (/permi|CAP_NET_RAW/i.test(text)) {
    const way = 'run as root, or give it CAP_NET_RAW: setcap cap_net_raw=ep "$(readlink -f "$(command -v node)")"'
    return new Fault('CAPTURE_DENIED', `${name}: no permission to capture; ${way}`, { cause: error })
  }
  if (/not up/i.test(text)) {
    return new Fault('CAPTURE_DENIED', `${name}: the interface is down; "ip link set ${name} up" brings it up`, {
      cause: error,
    })
  }
  if (/filter expression|syntax|vlan|proto/i.test(text)) {
    return new Fault('USAGE', `filter "${filter}": ${text}`, { cause: error })
  }
  if (/self-register/.test(text)) {
    return new Fault(
      'CAPTURE_DENIED',
      `${name}: another capture of an interface runs in this process; one is possible`,
      {
        cause: error,
      },
    )
  }
  if ((error as NodeJS.ErrnoException).code === 'MODULE_NOT_FOUND') {
    return new Fault(
      'CAPTURE_DENIED',
      `${name}: the pcap package is not built; install libpcap-dev and run "npm rebuild pcap"`,
      {
        cause: error,
      },
    )
  }
  return new Fault('CAPTURE_DENIED', `${name}: ${text || 'cannot be opened'}`, { cause: error })
}
