import { createHash, type KeyObject, sign } from 'node:crypto'
import { stringify } from 'csv-stringify/sync'
import { blockListOf } from '../../engine/export/block-list.ts'
import { type BlockListFormat, formatReach, formatText } from '../../engine/export/block-list-text.ts'
import { isoSeconds } from '../../engine/kernel/process/clock.ts'
import type { Catalog, Rule } from '../../registry/catalog.ts'
import { isUseOfAi } from '../../registry/contact.ts'
import { NameMatcher } from '../../registry/match.ts'
import type { Platform } from '../../registry/platform.ts'
import { platformListSchema } from '../../registry/registry-schema.ts'
import { DATA_FORM } from '../../registry/released-data.ts'
import type { DataRelease } from '../../registry/releases.ts'
import type { Release } from './files.ts'
import { publicKeyText } from './registry-signing.ts'

/*
 * The registry as data for other programs. Every file is text that depends on the registry and the
 * release only, so that two builds of one commit are equal.
 */

export const DATA_FILE = 'registry.json'
export const CHECKSUMS = 'SHA256SUMS'
export const SIGNATURE = 'SHA256SUMS.sig'
export const PUBLIC_KEY = 'public-key.pem'

/** Lists of hosts that indicate use of AI, in formats that other programs load. */
const LISTS: readonly (readonly [file: string, format: BlockListFormat])[] = [
  ['hosts.txt', 'hosts'],
  ['rpz.zone', 'rpz'],
]

/** The files of the package by name, in the order of their names. */
export function registryPackage(
  catalog: Catalog,
  release: Release,
  { key, releases = [] }: { readonly key?: KeyObject | undefined; readonly releases?: readonly DataRelease[] } = {},
): ReadonlyMap<string, string | Buffer> {
  const files = new Map<string, string>([
    ['LICENSE', licenseText()],
    ['README.md', readmeText(catalog, release, key !== undefined)],
    ['CHANGELOG.md', changelogText(releases)],
    [DATA_FILE, dataText(catalog, release)],
    ['registry.csv', csvText(catalog)],
    ['platforms.schema.json', `${JSON.stringify(platformListSchema(), null, 2)}\n`],
    ...v2flyFiles(catalog),
    ...LISTS.map(([file, format]) => [file, listText(catalog, format, release)] as const),
    ...(key === undefined ? [] : [[PUBLIC_KEY, publicKeyText(key)] as const]),
  ])
  const names = [...files.keys()].sort()
  const checksums = names.map((name) => `${sha256(files.get(name) ?? '')}  ${name}\n`).join('')
  const signed = new Map<string, string | Buffer>(names.map((name) => [name, files.get(name) ?? '']))
  signed.set(CHECKSUMS, checksums)
  // RFC 8032. The checksums cover every other file.
  if (key !== undefined) signed.set(SIGNATURE, sign(null, Buffer.from(checksums), key))
  return signed
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}

function changelogText(releases: readonly DataRelease[]): string {
  const parts = releases.map(
    ({ version, changes }) => `\n## ${version}\n\n${changes.map((each) => `- ${each}\n`).join('')}`,
  )
  return `# Changes of the data\n${parts.join('')}`
}

/** The platforms with the field names of registry files. */
export function dataText(
  { platforms }: Pick<Catalog, 'platforms'>,
  { version, commit, epochSeconds }: Release,
): string {
  const head = { form: DATA_FORM, version, commit, made_at: isoSeconds(epochSeconds * 1000), license: 'CC0-1.0' }
  return `${JSON.stringify({ ...head, platforms: platforms.map(fieldsOf) }, null, 1)}\n`
}

function fieldsOf({ platformType, ...platform }: Platform): object {
  return { ...platform, platform_type: platformType }
}

/** One row for each domain. */
function csvText({ rules }: Catalog): string {
  const columns = ['domain', 'match', 'role', 'purpose', 'specificity', 'platform_id', 'platform_name', 'vendor']
  return stringify(
    rules.map(({ domain, match, role, purpose, specificity, platform }) => [
      ...[domain, match, role, purpose, specificity],
      ...[platform.id, platform.name, platform.vendor, platform.platformType, platform.risk.score],
    ]),
    { header: true, columns: [...columns, 'platform_type', 'risk'] },
  )
}

/** A list in the form of v2fly/domain-list-community for each type, and one that includes them. */
function v2flyFiles({ rules }: Catalog): (readonly [file: string, text: string])[] {
  const types = [...new Set(rules.map(({ platform }) => platform.platformType))].sort()
  const files = types.map((type) => {
    const lines = rules.filter((rule) => rule.platform.platformType === type && isUseOfAi(rule)).map(v2flyLine)
    return [`v2fly/${fileOf(type)}`, lines.sort().join('')] as const
  })
  const all = types.map((type) => `include:${fileOf(type)}\n`).join('')
  return [...files.filter(([, text]) => text !== ''), ['v2fly/posture-ai', all]]
}

function fileOf(type: string): string {
  return `posture-${type.replaceAll('_', '-')}`
}

function v2flyLine({ domain, match }: Rule): string {
  if (match === 'exact') return `full:${domain}\n`
  if (match === 'suffix') return `domain:${domain}\n`
  const labels = domain.split('.').map((label) => label.replaceAll('*', '[^.]+'))
  return `regexp:^${labels.join('\\.')}$\n`
}

function listText(catalog: Catalog, format: BlockListFormat, { version, epochSeconds }: Release): string {
  const { rules } = catalog
  const source = {
    ...{ rules, disabledRules: [], matcher: new NameMatcher(catalog) },
    ...{ decisions: { states: new Map() }, ownDomain: '' },
  }
  const { entries } = blockListOf(source, { blocks: 'not-approved', riskMin: 0 }, formatReach(format))
  const comments = [`Hosts of AI platforms, posture-registry ${version}`, 'License: CC0-1.0']
  return formatText(entries, format, comments, epochSeconds * 1000)
}

function licenseText(): string {
  return `CC0 1.0 Universal (SPDX: CC0-1.0)

To the extent possible under law, the authors of this data have waived all copyright and related or
neighboring rights to it. The legal text is at
https://creativecommons.org/publicdomain/zero/1.0/legalcode

Names of products and vendors are trademarks of their owners.
`
}

function readmeText({ platforms, rules }: Catalog, { version, epochSeconds }: Release, isSigned: boolean): string {
  const verify = `sha256sum --check ${CHECKSUMS}`
  const signature = `openssl pkeyutl -verify -pubin -inkey ${PUBLIC_KEY} -rawin -in ${CHECKSUMS} -sigfile ${SIGNATURE}`
  return `# posture-registry ${version}

${platforms.length} AI platforms and AI-capable products with ${rules.length} domains, of ${isoSeconds(epochSeconds * 1000)}.

| File | Content |
| --- | --- |
| registry.json | All platforms with domains, risk and sources |
| registry.csv | One row for each domain |
| hosts.txt, rpz.zone | Hosts that indicate use of AI: hosts file, response policy zone |
| v2fly/ | The same as domain lists, one for each type |
| CHANGELOG.md | What each release of the data changed |
| platforms.schema.json | JSON Schema of the platforms in the sources |

Verify:

\`\`\`sh
${isSigned ? `${signature}\n${verify}` : verify}
\`\`\`
${isSigned ? `\nCompare ${PUBLIC_KEY} with the key that the project publishes.\n` : ''}`
}
