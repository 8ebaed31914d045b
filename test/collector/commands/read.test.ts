import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync, readFileSync, writeFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'
import t, { type Test } from 'tap'
import { ipFrame, udp } from '../../support/packets.ts'
import { dnsQuery, dnsResponse } from '../../support/packets-dns.ts'
import { framesAt, pcapFile } from '../../support/packets-pcap.ts'
import { interruptAndWait, PROGRAMS, REPOSITORY } from '../../support/programs.ts'

/** Tests `posture-collector read` with every kind of standard input. */
const CAPTURE = `${REPOSITORY}/test/captures/demo/input.pcap`
const NAMES = 129
const bytes = readFileSync(CAPTURE)

interface Reading {
  readonly child: ChildProcess
  readonly ended: Promise<{ status: number | null; names: number; stderr: string }>
}

function read(parameters: readonly string[], input: 'pipe' | number): Reading {
  const child = spawn(process.execPath, [PROGRAMS.collector, 'read', '--names', ...parameters], {
    stdio: [input, 'pipe', 'pipe'],
    env: { PATH: process.env['PATH'] },
  })
  let stdout = ''
  let stderr = ''
  child.stdout?.setEncoding('utf8').on('data', (chunk: string) => {
    stdout += chunk
  })
  child.stderr?.setEncoding('utf8').on('data', (chunk: string) => {
    stderr += chunk
  })
  const ended = once(child, 'close').then(([status]) => ({
    status: status as number | null,
    names: stdout.split('\n').filter((line) => line !== '').length,
    stderr,
  }))
  return { child, ended }
}

for (const { name, input } of [
  { name: 'pcap', input: bytes },
  { name: 'gzip', input: gzipSync(bytes) },
  {
    name: 'gzip in gzip, two members',
    input: Buffer.concat([gzipSync(bytes.subarray(0, 9999)), gzipSync(bytes.subarray(9999))]),
  },
  { name: 'zstd', input: execFileSync('zstd', ['-qc', CAPTURE]) },
  {
    name: 'zstd, two frames and a skippable one',
    input: Buffer.concat([
      Buffer.from('502a4d1804000000deadbeef', 'hex'),
      execFileSync('zstd', ['-qc'], { input: bytes.subarray(0, 9999) }),
      execFileSync('zstd', ['-qc'], { input: bytes.subarray(9999) }),
    ]),
  },
]) {
  t.test(`${name} is read from a pipe, in pieces`, async (t) => {
    const { child, ended } = read(['-'], 'pipe')
    for (const border of [3, 30, 5000]) {
      child.stdin?.write(input.subarray(border === 3 ? 0 : border === 30 ? 3 : 30, border))
      await sleep(20)
    }
    child.stdin?.end(input.subarray(5000))
    t.same(await ended, { status: 0, names: NAMES, stderr: '' })
  })
}

t.test('a redirected file, a named pipe and an empty input are read', async (t) => {
  const file = openSync(CAPTURE, 'r')
  t.match(await read(['-'], file).ended, { status: 0, names: NAMES })
  closeSync(file)
  const pipe = `${t.testdir()}/pipe`
  execFileSync('mkfifo', [pipe])
  const { ended } = read([pipe], 'pipe')
  const written = once(spawn('sh', ['-c', `cat "${CAPTURE}" > "${pipe}"`]), 'close')
  t.match(await ended, { status: 0, names: NAMES })
  await written
  const nothing = openSync('/dev/null', 'r')
  t.match(await read(['-'], nothing).ended, {
    status: 4,
    names: 0,
    stderr: /^posture-collector: CAPTURE_FORMAT -: the file is empty/,
  })
  closeSync(nothing)
})

t.test('names from a pipe are printed at once, and Ctrl-C ends the wait for more', async (t) => {
  const { child, ended } = read(['-'], 'pipe')
  child.stdin?.write(bytes.subarray(0, 60_000))
  await once(child.stdout as NodeJS.ReadableStream, 'data')
  child.kill('SIGINT')
  const { status, names, stderr } = await ended
  t.equal(status, 130)
  t.ok(names > 10, `${names} names`)
  t.equal(stderr, '')
})

t.test('Ctrl-C ends the wait for the first byte', async (t) => {
  const how = await interruptAndWait(() => {
    const { child, ended } = read(['-'], 'pipe')
    return { child, ended: ended.then((end) => ({ ...end, signal: child.signalCode })) }
  })
  t.same(how, { status: 130, signal: null, names: 0, stderr: '' })
})

/** Writes its peak memory in kilobytes to standard error when it ends. */
const PEAK = `process.on('exit', () => {
  const [, peak] = /VmHWM:\\s+(\\d+)/.exec(require('node:fs').readFileSync('/proc/self/status', 'latin1'))
  process.stderr.write(peak)
})`

function peakMegabytes(t: Test, report: string, files: readonly string[]): number {
  const { stderr, status } = spawnSync(
    process.execPath,
    ['--require', report, PROGRAMS.collector, 'read', '--names', ...files],
    { stdio: ['ignore', 'ignore', 'pipe'], encoding: 'utf8' },
  )
  t.equal(status, 0)
  return Number(stderr) / 1024
}

t.test('memory does not grow with the number of files', async (t) => {
  const directory = t.testdir({ 'report.cjs': PEAK })
  // Large enough to write to every batch of the pool. A pool for each file would keep 20 MB of it.
  const large = `${directory}/large.pcap`
  const records = bytes.subarray(24)
  const copies = Math.ceil(14_000_000 / records.length)
  writeFileSync(large, Buffer.concat([bytes.subarray(0, 24), ...Array.from({ length: copies }, () => records)]))
  const rows = [
    { file: CAPTURE, few: 20, many: 400 },
    // Memory of the threads that ended grows during the first files until it is collected.
    { file: large, few: 8, many: 24 },
  ]
  for (const { file, few, many } of rows) {
    const peak = (count: number): number =>
      peakMegabytes(
        t,
        `${directory}/report.cjs`,
        Array.from({ length: count }, () => file),
      )
    const [less, more] = [peak(few), peak(many)]
    t.ok(more - less < 100, `${few} files: ${less} MB, ${many} files: ${more} MB`)
  }
})

t.test('the output has the format that was asked for', async (t) => {
  const run = (...words: string[]) => {
    const { stdout, stderr, status } = spawnSync(process.execPath, [PROGRAMS.collector, 'read', ...words], {
      encoding: 'utf8',
      env: { PATH: process.env['PATH'], COLUMNS: '200' },
    })
    t.equal(status, 0, stderr)
    return { stdout, stderr, lines: stdout.trim().split(/\r?\n/) }
  }
  const json = run(CAPTURE).lines.map((line) => JSON.parse(line))
  t.match(json[0], {
    client: '10.20.1.21',
    method: 'dns',
    name: 'chatgpt.com',
    platform_id: 'chatgpt',
    platform_name: 'ChatGPT',
    platform_type: 'llm_chat',
    role: /^[a-z]+$/,
    specificity: 0.95,
    purpose: 'use',
    rule: 'chatgpt.com',
  })
  const csv = run('--format', 'csv', CAPTURE).lines
  t.equal(
    csv[0],
    'time,client,method,name,ech,via,platform_id,platform_name,platform_type,role,specificity,purpose,rule',
  )
  t.equal(csv.length, json.length + 1)
  t.match(csv[1], /^2026-\S+Z,10\.20\.1\.21,dns,chatgpt\.com,,,chatgpt,ChatGPT,llm_chat,[a-z]+,0\.95,use,chatgpt\.com$/)
  const both = run('--format', 'csv', '--names', CAPTURE, CAPTURE).lines
  t.equal(both[0], 'file,time,client,method,name,ech,via,server,port')
  t.equal(both.length, 2 * NAMES + 1)

  const table = run('--format', 'table', CAPTURE, CAPTURE).stdout
  for (const heading of ['File', 'Platform', 'Type', 'Role', 'Specificity', 'Purpose', 'Matches', 'Clients'])
    t.match(table, new RegExp(`│ ${heading} +│`))
  const chatGpt = json.filter(({ platform_id }) => platform_id === 'chatgpt')
  const clients = new Set(chatGpt.map(({ client }) => client)).size
  t.match(table, new RegExp(`│ ChatGPT +│ ${2 * chatGpt.length} +│ ${clients} +│`), 'the summary counts all files')
  t.equal(run('--format', 'csv', '--stats', CAPTURE).lines[0], 'file,counter,count')
})

t.test('a hint says that a capture has one direction only', async (t) => {
  const directory = t.testdir()
  const [client, server] = ['10.0.0.1', '192.0.2.53']
  const query = (port: number): Buffer => {
    const payload = udp({ sourcePort: port, destinationPort: 53 }, dnsQuery(['example.com']))
    return ipFrame({ source: client, destination: server }, payload)
  }
  const answer = (port: number): Buffer => {
    const payload = udp({ sourcePort: 53, destinationPort: port }, dnsResponse('example.com', '192.0.2.1'))
    return ipFrame({ source: server, destination: client }, payload)
  }
  const indexes = Array.from({ length: 30 }, (_, index) => 40_000 + index)
  const rows: readonly (readonly [name: string, packets: Buffer[], hint: RegExp | ''])[] = [
    ['servers', indexes.map(answer), /servers\.pcap: the file has packets of servers, and none of clients/],
    ['clients', indexes.map(query), /clients\.pcap: the file has DNS queries and no answers/],
    ['both', indexes.flatMap((index) => [query(index), answer(index)]), ''],
  ]
  for (const [name, packets, hint] of rows) {
    const path = `${directory}/${name}.pcap`
    writeFileSync(path, pcapFile(framesAt(Date.parse('2026-11-20T09:15:02Z'), packets)))
    const { stderr, status } = spawnSync(process.execPath, [PROGRAMS.collector, 'read', path], { encoding: 'utf8' })
    t.equal(status, 0)
    if (hint === '') t.equal(stderr, '', name)
    else t.match(stderr, hint, name)
  }
})

for (const [name, packed] of [
  ['gzip', gzipSync(bytes)],
  [
    'gzip of more than is looked at first',
    gzipSync(Buffer.concat([bytes, ...Array.from({ length: 9 }, () => bytes.subarray(24))])),
  ],
] as const) {
  t.test(`${name}, truncated in the middle, is read up to there, and one line reports the offset`, async (t) => {
    const path = `${t.testdir()}/cut.pcap.gz`
    writeFileSync(path, packed.subarray(0, packed.length / 2))
    const { status, names, stderr } = await read([path], 'pipe').ended
    t.equal(status, 3)
    t.ok(names > 20, `${names} names`)
    t.match(stderr, /^posture-collector: CAPTURE_DAMAGED .*cut\.pcap\.gz: byte \d+: gzip: unexpected end of file\n$/)
  })
}
