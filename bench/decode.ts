import { statSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Figure, inDirectory, inTurn, isInstalled, type Size, same, timed } from './harness.ts'
import { decodeMix, type Mix, writeMix } from './workload/decode-mix.ts'

/**
 * From a capture file to its names, as whole processes: the program's own `read`, tcpdump with a
 * filter that passes the same packets, and tshark, which finds the same names.
 */
const COLLECTOR = fileURLToPath(new URL('../collector/main.js', import.meta.url))
const TLS_DATA = '(tcp dst port 443 and ip[2:2] - ((ip[0] & 0xf) << 2) - ((tcp[12] & 0xf0) >> 2) != 0)'
const FILTER = `udp dst port 53 or ${TLS_DATA} or udp dst port 443`
const TSHARK = ['-n', '-T', 'fields', '-e', 'dns.qry.name', '-e', 'tls.handshake.extensions_server_name', '-r']
const REPETITIONS = 50

export async function run(size: Size): Promise<Figure[]> {
  const mix = decodeMix(size === 'toy' ? 2_000 : 20_000, 1)
  return inDirectory(async (folder) => {
    const path = join(folder, 'mix.pcap')
    const repetitions = { toy: 1, short: 10, full: REPETITIONS }[size]
    const small = await compareOn(path, mix, repetitions, { full: 5, short: 1, toy: 1 }[size], 2)
    const slow = isInstalled('tshark') ? await compareWithTshark(path, mix, repetitions) : []
    // The start of the programs counts less.
    const large = size === 'full' ? await compareOn(path, mix, 10 * REPETITIONS, 3, 1.5) : []
    return [...small, ...slow, ...large]
  })
}

const namesOf = ({ names }: Mix): number => names.dns + names.tls + names.quic

function ours(path: string, names: number): number {
  const { seconds, text } = timed(process.execPath, [COLLECTOR, 'read', '--stats', path])
  same('ours', Number(/"counter":"names","count":(\d+)/.exec(text)?.[1]), names)
  return seconds
}

async function compareOn(path: string, mix: Mix, times: number, rounds: number, atMost: number): Promise<Figure[]> {
  writeMix(path, mix, times)
  const passing = (namesOf(mix) + mix.frames.filter(isSecondSegment).length) * times
  const { text } = timed('tcpdump', ['--count', '-r', path, FILTER])
  same('tcpdump', Number(/^(\d+) packet/m.exec(text)?.[1]), passing)
  const figure = await inTurn(rounds, [
    { name: 'ours', run: () => ours(path, namesOf(mix) * times) },
    { name: 'tcpdump -w /dev/null', run: () => timed('tcpdump', ['-r', path, '-w', '/dev/null', FILTER]).seconds },
  ])
  const what = `decode ${mix.frames.length * times} packets, ${Math.round(statSync(path).size / 1e6)} MB`
  return [{ what, unit: 's', ...figure, aim: { ratio: true, atMost } }]
}

async function compareWithTshark(path: string, mix: Mix, times: number): Promise<Figure[]> {
  const names = namesOf(mix) * times
  const figure = await inTurn(1, [
    { name: 'ours', run: () => ours(path, names) },
    {
      name: 'tshark -T fields',
      run: () => {
        const { seconds, text } = timed('tshark', [...TSHARK, path])
        // A line without a name contains only tabs.
        same('tshark', text.split('\n').filter((line) => line.includes('\t') && line.trim() !== '').length, names)
        return seconds
      },
    },
  ])
  return [{ what: 'the same file, one run', unit: 's', ...figure, aim: { ratio: true, atMost: 1 / 40 } }]
}

/** The second segment of a post-quantum hello has no name of its own. */
function isSecondSegment(frame: Buffer): boolean {
  return frame.readUInt8(23) === 6 && frame.readUInt16BE(36) === 443 && frame.readUInt32BE(38) !== 1
}
