import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import type { ExpectedName } from './generated-capture.ts'

const run = promisify(execFile)
const FILTER =
  '(dns.flags.response==0 && dns.flags.opcode==0 && !mdns && !llmnr && !nbns && !icmp && !icmpv6 && ' +
  '(udp.port==53 || tcp.port==53)) || tls.handshake.type==1'
/** Separator of repeated fields in one column. */
const BETWEEN = '\u001f'
const FIELDS = [
  'frame.protocols',
  'frame.time_epoch',
  'ip.src',
  'ipv6.src',
  'dns.qry.name',
  'tls.handshake.extensions_server_name',
]

/** Limit of tshark's output for one file. */
const OUTPUT_BYTES_MAX = 1024 * 1024 * 1024

export type ShownName = Pick<ExpectedName, 'client' | 'name' | 'timeMs'>

/**
 * The names that tshark finds in a capture file: of DNS queries on port 53, and of ClientHellos
 * over TCP and QUIC. With `damaged`, a nonzero exit status is expected. By its defaults, tshark does
 * not read a message whose segments are out of order. If it waits for them, it reads nothing after
 * a lost segment.
 */
export async function shownByTshark(file: string, damaged: boolean, waits = true): Promise<ShownName[]> {
  const order = waits ? ['-o', 'tcp.reassemble_out_of_order:TRUE'] : []
  const parameters = ['-n', '-r', file, ...order, '-Y', FILTER, '-T', 'fields']
  const columns = ['-E', `aggregator=${BETWEEN}`, ...FIELDS.flatMap((field) => ['-e', field])]
  const { stdout } = await run('tshark', [...parameters, ...columns], { maxBuffer: OUTPUT_BYTES_MAX }).catch(
    (fault) => {
      // tshark reads a damaged file up to the damage, then exits with a nonzero status.
      if (damaged) return fault as { stdout: string }
      throw fault
    },
  )
  return stdout.split('\n').flatMap((line) => (line === '' ? [] : rowsOf(line)))
}

/** One row per name in a frame. */
function rowsOf(line: string): ShownName[] {
  const [protocols = '', time = '', ...values] = line.split('\t')
  const [sources4 = [], sources6 = [], questions = [], serverNames = []] = values.map((value) =>
    value === '' ? [] : value.split(BETWEEN),
  )
  // A tunneled packet has several sources. The client is the source of the innermost packet.
  const innermost = protocols.split(':').findLast((protocol) => protocol === 'ip' || protocol === 'ipv6')
  const client = (innermost === 'ip' ? sources4 : sources6).at(-1) ?? ''
  const timeMs = Math.round(Number(time) * 1000)
  return [...questions, ...serverNames].map((shownName) => ({
    client,
    name: shownName === '<Root>' ? '.' : shownName.toLowerCase(),
    timeMs,
  }))
}
