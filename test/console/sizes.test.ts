import { randomBytes, randomInt } from 'node:crypto'
import { gzipSync } from 'node:zlib'
import t from 'tap'
import { GZIP_LEVEL } from '../../console/http/respond.ts'
import { serveConsole } from '../support/console.ts'
import { crawl } from '../support/console-crawl.ts'
import { populate } from '../support/console-data.ts'

const PAGE_GZIP_BYTES_MAX = 40 * 1024

t.test('every page of an organization with 800 platforms has at most 40 KB', async (t) => {
  const site = await serveConsole(t)
  const random = (): string => randomBytes(8).toString('hex')
  const words = {
    text: (what: string) => `${what} ${random()} ${random()} ${random()}`,
    host: () => `${random()}.example`,
    address: () => Array.from({ length: 4 }, () => randomInt(256)).join('.'),
  }
  const owner = populate(site, site.organization, words, { platforms: 800, sources: 1000 })
  const { answers } = await crawl(owner)
  for (const [path, { text, headers }] of answers) {
    if (!String(headers['content-type']).startsWith('text/html')) continue
    const bytes = gzipSync(text, { level: GZIP_LEVEL }).length
    t.ok(bytes <= PAGE_GZIP_BYTES_MAX, `${path}: ${bytes} bytes`)
  }
})
