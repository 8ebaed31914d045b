import { createHash } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { REPORT_STYLE } from '../engine/export/report/style.ts'
import { ASSETS_FILE, type StoredAsset } from './assets.ts'
import { COMMON_PASSWORD_LENGTH_MIN, COMMON_PASSWORDS_FILE } from './sign-in/common-passwords.ts'

/**
 * Bundles console/design/*.css, the icon and the browser scripts into assets.json, and writes a
 * list of common passwords to common-passwords.txt, both into the folder of the compiled files. Run
 * by `npm run build` as `node dist/console/build.js`.
 */
const DESIGN = new URL('../../console/design/', import.meta.url)
/** In the order of the cascade. */
const STYLES = [
  'tokens.css',
  'base.css',
  'layout.css',
  'parts.css',
  'form.css',
  'table.css',
  'chart.css',
  'pages.css',
  'setup.css',
  'small.css',
  'print.css',
]
const HASH_DIGITS = 16

function assetOf(name: string, type: string, text: string): StoredAsset {
  const body = Buffer.from(text)
  const hash = createHash('sha256').update(body).digest('hex').slice(0, HASH_DIGITS)
  const path = `/assets/${name.replace('.', `.${hash}.`)}`
  const gzip = gzipSync(body, { level: 9 })
  return { name, path, type, hash, body: body.toString('base64'), gzip: gzip.toString('base64') }
}

const styles = [...STYLES.map((name) => readFileSync(new URL(name, DESIGN), 'utf8')), REPORT_STYLE].join('\n')
const script = ['console.js', 'passkeys.js']
  .map((name) => readFileSync(new URL(`./browser/${name}`, import.meta.url), 'utf8'))
  .join('\n')
writeFileSync(
  fileURLToPath(ASSETS_FILE),
  JSON.stringify([
    assetOf('console.css', 'text/css; charset=utf-8', styles),
    assetOf('console.js', 'text/javascript; charset=utf-8', script),
    assetOf('icon.svg', 'image/svg+xml', readFileSync(new URL('icon.svg', DESIGN), 'utf8')),
  ]),
)

/** About 49,000 leaked passwords, in lower case. */
const { dictionary } = createRequire(import.meta.url)('@zxcvbn-ts/language-common') as {
  readonly dictionary: Readonly<Record<'passwords-common', readonly string[]>>
}
const common = dictionary['passwords-common'].filter((word) => word.length >= COMMON_PASSWORD_LENGTH_MIN)
writeFileSync(fileURLToPath(COMMON_PASSWORDS_FILE), `\n${common.join('\n')}\n`)
