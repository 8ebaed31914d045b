import { execFile, spawnSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import { REPOSITORY } from '../support/programs.ts'
import type { Expectation, ExpectedName } from './made-capture.ts'

/**
 * A second opinion on what the builders say that they put in: tshark reads the same files, and must show the same names of the same
 * clients. Our own decoder has no part in this.
 */
const FOLDER = join(REPOSITORY, 'test/captures')
const run = promisify(execFile)
const FILTER = '(dns.flags.response==0 && !mdns && !llmnr && !nbns && !icmp && !icmpv6) || tls.handshake.type==1'
/** Repeated fields stand in one column, with this between them. */
const BETWEEN = '\u001f'
const FIELDS = [
  'frame.protocols',
  'frame.time_epoch',
  'ip.src',
  'ipv6.src',
  'dns.qry.name',
  'tls.handshake.extensions_server_name',
]

const version = spawnSync('tshark', ['--version'], { encoding: 'utf8' })
if (version.error !== undefined) {
  t.fail('tshark is needed to check the captures: install the Debian package tshark')
} else {
  t.comment(version.stdout.split('\n')[0] ?? '')
  // Two programs at a time.
  t.jobs = 2
  const folders = readdirSync(FOLDER, { withFileTypes: true }).filter((entry) => entry.isDirectory())
  for (const { name } of folders) {
    const folder = join(FOLDER, name)
    const file = readdirSync(folder).find((file) => file.startsWith('input.')) ?? ''
    const expected = JSON.parse(readFileSync(join(folder, 'expect.json'), 'utf8')) as Expectation
    if (expected.tshark === false) {
      t.test(`${name}: the README says what tshark reads otherwise`, async (t) => {
        t.match(readFileSync(join(folder, 'README.md'), 'utf8'), /tshark/)
      })
      continue
    }
    t.test(`${name}: tshark shows the same names`, async (t) => {
      const rows = await shown(join(folder, file), expected.damage !== undefined)
      // The order is not compared: when a message is complete, tshark and we need not agree.
      t.same(rows.map(lineOf(expected)).sort(), expected.names.map(lineOf(expected)).sort())
    })
  }
}

type Row = Pick<ExpectedName, 'client' | 'name' | 'timeMs'>

/** With the time where the case is about times. */
function lineOf(expected: Expectation): (row: Row) => string {
  const timed = expected.names.some(({ timeMs }) => timeMs !== undefined)
  return ({ client, name, timeMs }) => `${timed ? `${timeMs} ` : ''}${client} ${name}`
}

async function shown(file: string, damaged: boolean): Promise<Row[]> {
  const parameters = ['-n', '-r', file, '-o', 'tcp.reassemble_out_of_order:TRUE', '-Y', FILTER, '-T', 'fields']
  const columns = ['-E', `aggregator=${BETWEEN}`, ...FIELDS.flatMap((field) => ['-e', field])]
  const { stdout } = await run('tshark', [...parameters, ...columns]).catch((fault) => {
    // It reads a damaged file up to the damage, and says so by its exit status.
    if (damaged) return fault as { stdout: string }
    throw fault
  })
  return stdout.split('\n').flatMap((line) => (line === '' ? [] : rowsOf(line)))
}

/** One row for each name of a frame. */
function rowsOf(line: string): Row[] {
  const [protocols = '', time = '', ...values] = line.split('\t')
  const [sources4 = [], sources6 = [], questions = [], serverNames = []] = values.map((value) =>
    value === '' ? [] : value.split(BETWEEN),
  )
  // Behind tunnels there are several: the client is the source of the innermost packet.
  const innermost = protocols.split(':').findLast((protocol) => protocol === 'ip' || protocol === 'ipv6')
  const client = (innermost === 'ip' ? sources4 : sources6).at(-1) ?? ''
  const timeMs = Math.round(Number(time) * 1000)
  return [...questions, ...serverNames].map((shownName) => ({
    client,
    name: shownName === '<Root>' ? '.' : shownName.toLowerCase(),
    timeMs,
  }))
}
