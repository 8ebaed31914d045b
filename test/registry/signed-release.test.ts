import { createPublicKey } from 'node:crypto'
import { gzipSync } from 'node:zlib'
import t from 'tap'
import { builtInData } from '../../registry/built-in.ts'
import { compareVersions, dayOfVersion } from '../../registry/data-version.ts'
import { dataVersion } from '../../registry/data-version-schema.ts'
import { dataOf, expiryProblem, publicKeysOf, UpdateFileError, verifiedRelease } from '../../registry/signed-release.ts'
import { FIRST_KEY, makeUpdate, newKey, newPlatform, ROOT, SECOND_KEY } from '../support/registry-updates.ts'

const VERSION = '2026.12.01'
const root = createPublicKey(ROOT)
const good = makeUpdate(VERSION, { platforms: [newPlatform('new-llm', 'llm.example.net')] })

t.test('a release of the built-in registry is equal to it', async (t) => {
  const data = dataOf(verifiedRelease(makeUpdate(VERSION), [root]))
  t.equal(data.version, VERSION)
  t.same(data.platforms, builtInData().platforms)
})

t.test('two update files of the same data and key are equal', async (t) => {
  t.same(makeUpdate(VERSION), makeUpdate(VERSION))
})

/** The header of an update file with some fields replaced. */
function withHeader(fields: Readonly<Record<string, unknown>>, file = good): Buffer {
  const end = file.indexOf(0x0a)
  const head = { ...(JSON.parse(file.toString('utf8', 0, end)) as object), ...fields }
  return Buffer.concat([Buffer.from(JSON.stringify(head)), file.subarray(end)])
}

function headerOf(file: Buffer): Readonly<Record<string, string>> {
  return JSON.parse(file.toString('utf8', 0, file.indexOf(0x0a))) as Record<string, string>
}

function withByte(at: number): Buffer {
  const changed = Buffer.from(good)
  changed[at] = (changed[at] ?? 0) ^ 1
  return changed
}

t.test('refused by its signatures or its form', async (t) => {
  const other = makeUpdate(VERSION, { signer: SECOND_KEY })
  const { key, key_signature } = headerOf(other)
  const { manifest, manifest_signature } = headerOf(makeUpdate('2027.01.01'))
  const rows: readonly (readonly [what: string, file: Buffer, why: RegExp])[] = [
    ['another root', makeUpdate(VERSION, { root: newKey() }), /no pinned root key has signed its release key/],
    ['another release key, in the name of a signed one', withHeader({ key, key_signature }), /signature does not fit/],
    ['a key that the root did not sign', withHeader({ key }), /no pinned root key/],
    ['the manifest of another release', withHeader({ manifest, manifest_signature }), /what was signed/],
    ['a manifest without its signature', withHeader({ manifest }), /signature does not fit/],
    ['signatures of each other', withHeader({ key_signature: manifest_signature }), /no pinned root key/],
    ['an empty signature', withHeader({ manifest_signature: '' }), /signature does not fit|manifest_signature/],
    ['a later form', withHeader({ posture_registry: 2 }), /posture_registry: is of a later form/],
    ['one bit of the content', withByte(good.length - 9), /the file is damaged/],
    ['truncated', good.subarray(0, -1), /the file is damaged/],
    ['with a byte more', Buffer.concat([good, Buffer.from('x')]), /the file is damaged/],
    ['empty', Buffer.alloc(0), /not an update file/],
    ['another file', gzipSync('text'), /not an update file/],
    ['no line end', Buffer.alloc(100_000, 'x'), /not an update file/],
    ['too large', Buffer.alloc(8 * 1024 * 1024 + 1), /larger than/],
    [
      'a version after the last day of its key',
      makeUpdate(VERSION, { signer: { ...FIRST_KEY, until: '2026-11-30' } }),
      /may sign versions until 2026-11-30, and not 2026\.12\.01/,
    ],
  ]
  for (const [what, file, why] of rows) {
    t.throws(() => verifiedRelease(file, [root]), { name: UpdateFileError.prototype.name, message: why }, what)
  }
  t.throws(() => verifiedRelease(good, []), /no pinned root key/, 'no root')
  t.throws(() => verifiedRelease(good, [createPublicKey(newKey())]), /no pinned root key/, 'only another root')
})

t.test('each of two pinned roots is enough', async (t) => {
  t.equal(verifiedRelease(good, [createPublicKey(newKey()), root]).keyNumber, 1)
  t.equal(verifiedRelease(makeUpdate(VERSION, { signer: SECOND_KEY }), [root]).keyNumber, 2)
})

t.test('refused by the schema, although signed', async (t) => {
  const { platformType: platform_type, ...fields } = newPlatform('a', 'a.example.net')
  const entry = { ...fields, platform_type }
  const document = { form: 1, version: VERSION, platforms: [entry] }
  const rows: readonly (readonly [what: string, json: string, why: RegExp])[] = [
    ['no JSON', 'x', /its content is no JSON/],
    ['a later form', JSON.stringify({ ...document, form: 2 }), /form: is a later form/],
    ['no platform', JSON.stringify({ ...document, platforms: [] }), /platforms/],
    ['another version', JSON.stringify({ ...document, version: '2026.12.02' }), /is of version 2026\.12\.02/],
    [
      'an unknown type',
      JSON.stringify({ ...document, platforms: [{ ...entry, platform_type: 'x' }] }),
      /platform_type/,
    ],
    ['an ID twice', JSON.stringify({ ...document, platforms: [entry, entry] }), /occurs twice/],
    [
      'a domain twice',
      JSON.stringify({ ...document, platforms: [entry, { ...entry, id: 'other' }] }),
      /a\.example\.net occurs twice/,
    ],
  ]
  for (const [what, json, why] of rows) {
    const release = verifiedRelease(makeUpdate(VERSION, { json }), [root])
    t.throws(() => dataOf(release), why, what)
  }
  const known = { ...document, platforms: [{ ...entry, later_field: 1 }], later: true }
  const release = verifiedRelease(makeUpdate(VERSION, { json: JSON.stringify(known) }), [root])
  t.equal(dataOf(release).platforms.length, 1, 'fields of later programs are ignored')
})

t.test('a small file that unpacks to much is refused', async (t) => {
  const release = verifiedRelease(makeUpdate(VERSION, { json: ' '.repeat(65 * 1024 * 1024) }), [root])
  t.throws(() => dataOf(release), /cannot be decompressed/)
})

t.test('a release is valid through its last day', async (t) => {
  const release = verifiedRelease(makeUpdate('2026.11.23.2', { validDays: 10 }), [root])
  t.equal(release.validUntil, '2026-12-03')
  const problem = 'the registry 2026.11.23.2 was valid until 2026-12-03; install a newer release'
  for (const [time, expected] of [
    ['2026-11-23T00:00:00Z', ''],
    ['2026-12-03T23:59:59Z', ''],
    ['2026-12-04T00:00:00Z', problem],
    ['2030-01-01T00:00:00Z', problem],
  ] as const) {
    t.equal(expiryProblem(release, Date.parse(time)), expected, time)
    t.equal(expiryProblem({ ...release, validUntil: '' }, Date.parse(time)), '', 'a release of an earlier publisher')
  }
})

t.test('versions', async (t) => {
  const ascending = ['2025.12.31', '2026.01.02', '2026.01.02.2', '2026.01.02.10', '2026.01.03']
  for (const [index, version] of ascending.entries()) {
    t.ok(dataVersion.safeParse(version).success, version)
    t.equal(compareVersions(version, version), 0)
    for (const later of ascending.slice(index + 1)) {
      t.ok(compareVersions(version, later) < 0 && compareVersions(later, version) > 0, `${version} < ${later}`)
    }
  }
  t.equal(dayOfVersion('2026.01.02.10'), '2026-01-02')
  for (const not of ['2026.1.2', '2026.13.01', '2026.02.30', '2026.01.02.1', '2026.01.02.1000', '2026.01.02 ', '1.2.3'])
    t.notOk(dataVersion.safeParse(not).success, not)
})

t.test('keys of other kinds and other text are no root keys', async (t) => {
  t.same(publicKeysOf('text'), [])
  t.same(publicKeysOf('-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----'), [])
})
