import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Agent, request } from 'undici'
import { startService } from '../test/support/programs.ts'
import { cpuSeconds, type Figure, inDirectory, type Size, stopped } from './harness.ts'
import { makeConsoleData } from './workload/console-data.ts'

/** The console of a running service: CPU time of the service and size of each page, compressed. */
const MS_AIM = 20
const BYTES_AIM = 40 * 1024

export async function run(size: Size): Promise<Figure[]> {
  const [platforms, times] = size === 'toy' ? [20, 2] : [800, 50]
  return inDirectory(async (directory) => {
    const { pages, cookie } = await makeConsoleData(directory, platforms)
    const service = await startService(directory, [
      '--api-threads',
      '1',
      '--ingest-port',
      'off',
      '--log-level',
      'ERROR',
    ])
    const dispatcher = new Agent({ connect: { ca: readFileSync(join(directory, 'tls/certificate.pem')) } })
    const pid = service.child.pid ?? 0
    const bytesOf = async (path: string): Promise<number> => {
      const url = `https://localhost:${service.consolePort}${path}`
      const { statusCode, body } = await request(url, { dispatcher, headers: { 'accept-encoding': 'gzip', cookie } })
      const { byteLength } = await body.arrayBuffer()
      if (statusCode !== 200) throw new Error(`${url}: ${statusCode}`)
      return byteLength
    }
    const rows: { path: string; ms: number; bytes: number }[] = []
    try {
      for (const path of pages) {
        // Warms up.
        for (let time = 0; time < times; time++) await bytesOf(path)
        const before = cpuSeconds(pid)
        let bytes = 0
        for (let time = 0; time < times; time++) bytes = await bytesOf(path)
        const ms = ((cpuSeconds(pid) - before) * 1000) / times
        rows.push({ path: path.replace(/[0-9a-f-]{36}/, ':id'), ms, bytes })
      }
    } finally {
      await dispatcher.close()
      await stopped(service.child)
    }
    const most = (what: 'ms' | 'bytes') =>
      rows.toSorted((a, b) => b[what] - a[what])[0] ?? { path: '', ms: 0, bytes: 0 }
    const [slowest, largest] = [most('ms'), most('bytes')]
    return [
      { what: `CPU for the slowest page, ${slowest.path}`, unit: 'ms', ours: slowest.ms, aim: { atMost: MS_AIM } },
      { what: `the largest page, ${largest.path}`, unit: 'bytes', ours: largest.bytes, aim: { atMost: BYTES_AIM } },
    ]
  })
}
