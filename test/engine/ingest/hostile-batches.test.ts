import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { constants, gzipSync } from 'node:zlib'
import t from 'tap'
import { EVENTS_PATH, LOGS_PATH } from '../../../engine/ingest/https-batches.ts'
import { packBatch } from '../../../engine/kernel/event/event.ts'
import { BATCH_BYTES_MAX, BATCH_UNPACKED_BYTES_MAX } from '../../../engine/limits.ts'
import { httpsClient } from '../../support/https.ts'
import { startService } from '../../support/programs.ts'
import { organizationWithToken } from '../../support/syslog-service.ts'

/*
 * Bodies of a few kilobytes that decompress to the largest batch and more, and contain what is
 * expensive to build: a service with little memory answers each of them within some CPU time, and
 * continues to serve.
 */
const HEAP_MB = 256
/** For the shapes of log bodies. */
const LOGS = 'text/plain'
/**
 * On a machine without other work, each takes at most 100 ms. Without the checks, most of them take
 * seconds.
 */
const CPU_MS_MAX = 400
const RESIDENT_MB_MAX = 700

const filled = (before: string, repeated: string, after: string, bytesMax = BATCH_BYTES_MAX): Buffer => {
  const count = Math.floor((bytesMax - before.length - after.length) / repeated.length)
  return Buffer.concat([Buffer.from(before), Buffer.alloc(count * repeated.length, repeated), Buffer.from(after)])
}
const JSON_SHAPES: Readonly<Record<string, Buffer>> = {
  'empty objects': filled('{"events":[{}', ',{}', ']}'),
  'nested lists': filled('{"events":[', '[', ''),
  'lists of lists': filled('{"events":[[]', ',[[]]', ']}'),
  'nested objects': filled('{"events":[', '{"a":', ''),
  numbers: filled('{"events":[1', ',1', ']}'),
  'texts of one character': filled('{"events":["a"', ',"a"', ']}'),
  'long texts': filled('{"events":["a"', `,"${'a'.repeat(4000)}"`, ']}'),
  'one text': filled('{"events":["', 'a', '"]}'),
  escapes: filled('{"events":["', '\\u0041', '"]}'),
  blanks: filled('{"events":[', ' ', ']}'),
  keys: Buffer.from(`{"events":[],${Array.from({ length: 2_000_000 }, (_, at) => `"${at}":1`).join(',')}}`),
}
const msgpack = (header: number[], repeated: number[]): Buffer =>
  Buffer.concat([Buffer.from(header), Buffer.alloc(BATCH_BYTES_MAX - header.length, Buffer.from(repeated))])
/** The header of a batch with a list of as many events as bytes follow. */
const EVENTS = [0x92, 0x01, 0xdd, 0x01, 0xff, 0xff, 0xf8]
const TEN_THOUSAND = [0x92, 0x01, 0xdc, 0x27, 0x10]
const MSGPACK_SHAPES: Readonly<Record<string, Buffer>> = {
  'empty lists': msgpack(EVENTS, [0x90]),
  'empty maps': msgpack(EVENTS, [0x80]),
  'nested lists': msgpack(TEN_THOUSAND, [0x91]),
  'nested maps': msgpack(TEN_THOUSAND, [0x81, 0xa1, 0x61]),
  'maps of 15 keys': msgpack(TEN_THOUSAND, [0x8f]),
  'lists that announce much': msgpack(TEN_THOUSAND, [0xdd, 0x01, 0x00, 0x00, 0x00]),
  numbers: msgpack(TEN_THOUSAND, [0x01]),
  records: msgpack(TEN_THOUSAND, [0xd4, 0x72, 0x40, 0x91, 0xa1, 0x61]),
  extensions: msgpack(TEN_THOUSAND, [0xc7, 0x01, 0x62, 0x00]),
}
/** Valid batches with coverage reports that msgpackr would execute. */
const COVERAGE_SHAPES: Readonly<Record<string, Buffer>> = {
  'a record that defines records': Buffer.from(`930190dc0386d4724091a161${'40'.repeat(899)}01`, 'hex'),
  'a regular expression': Buffer.from(`93019092d4784092da0100${'28'.repeat(256)}a0`, 'hex'),
  'a typed array': Buffer.from('93019092d4744101', 'hex'),
  'a reference': Buffer.from('93019092d4700001', 'hex'),
}
const LOG_SHAPES: Readonly<Record<string, Buffer>> = {
  'short lines': filled('', '1;2;3\n', '', BATCH_UNPACKED_BYTES_MAX),
  'empty lines': filled('', '\n', '', BATCH_UNPACKED_BYTES_MAX),
  'objects without line feeds': filled('', '{}', '', BATCH_UNPACKED_BYTES_MAX),
  'objects of an array': filled('[', '{},', '{}]', BATCH_UNPACKED_BYTES_MAX),
}

t.test('a small body cannot exhaust the memory or the CPU of the service', async (t) => {
  const data = t.testdir()
  const { token } = await organizationWithToken(data, 'Acme', 'sensor')
  const service = await startService(data, ['--http-logs'], { NODE_OPTIONS: `--max-old-space-size=${HEAP_MB}` })
  t.teardown(() => service.child.kill('SIGKILL'))
  const { ask, close } = httpsClient(service.ingestPort, join(data, 'tls/certificate.pem'))
  t.teardown(close)
  const post = (type: string, body: Buffer) =>
    ask(type === LOGS ? LOGS_PATH : EVENTS_PATH, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': type, 'content-encoding': 'gzip' },
      body,
    })
  const compressed = (shape: Buffer): Buffer => gzipSync(shape, { level: constants.Z_BEST_COMPRESSION })
  const cases = [
    ...Object.entries(JSON_SHAPES).map(([name, shape]) => ['application/json', name, compressed(shape)] as const),
    ...Object.entries({ ...MSGPACK_SHAPES, ...COVERAGE_SHAPES }).map(
      ([name, shape]) => ['application/msgpack', name, compressed(shape)] as const,
    ),
    ...Object.entries(LOG_SHAPES).map(([name, shape]) => [LOGS, name, compressed(shape)] as const),
  ]
  const pid = service.child.pid ?? 0
  t.equal((await post('application/msgpack', gzipSync(packBatch([])))).status, 200, 'warm')
  for (const [type, name, body] of cases) {
    const before = cpuMs(pid)
    const { status, text } = await post(type, body)
    const used = cpuMs(pid) - before
    t.ok(status === 400 || status === 413 || status === 200, `${type}, ${name}: ${status} ${text.slice(0, 200)}`)
    if (name in COVERAGE_SHAPES) t.match(text, /extension types are not accepted/, name)
    t.ok(used <= CPU_MS_MAX, `${type}, ${name}: ${body.length} bytes took ${used} ms of CPU`)
  }
  const all = await Promise.all(cases.map(([type, , body]) => post(type, body)))
  t.ok(
    all.every(({ status }) => [200, 400, 413, 503].includes(status)),
    all.map(({ status }) => status).join(' '),
  )
  t.equal((await post('application/msgpack', gzipSync(packBatch([])))).status, 200, 'it serves on')
  const residentMb = Number(/VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024
  t.ok(residentMb < RESIDENT_MB_MAX, `${Math.round(residentMb)} MB`)
})

/** CPU time of a process, in milliseconds (proc(5), fields 14 and 15, in ticks of 10 ms). */
function cpuMs(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[11]) + Number(fields[12])) * 10
}
