import { execFileSync, spawnSync } from 'node:child_process'
import { createHash, generateKeyPairSync, verify } from 'node:crypto'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parse } from 'csv-parse/sync'
import t from 'tap'
import { registryPackage } from '../../../deploy/release/registry-package.ts'
import { loadCatalog } from '../../../registry/catalog.ts'
import { isUseOfAi } from '../../../registry/contact.ts'
import { NameMatcher } from '../../../registry/match.ts'
import { dataOf, publicKeysOf, verifiedRelease } from '../../../registry/signed-release.ts'

const RELEASE = { version: '2026.11.23', commit: 'c'.repeat(40), epochSeconds: 1_795_000_000 }
const catalog = loadCatalog()
const matcher = new NameMatcher(catalog)
const { privateKey, publicKey } = generateKeyPairSync('ed25519')
const files = registryPackage(catalog, RELEASE, { key: privateKey })
const text = (name: string): string => String(files.get(name))

t.test('two builds are equal, and depend on nothing but registry, release and key', async (t) => {
  t.same([...registryPackage(loadCatalog(), RELEASE, { key: privateKey })], [...files])
  const unsigned = registryPackage(catalog, RELEASE)
  t.notOk(unsigned.has('SHA256SUMS.sig'))
  t.equal(unsigned.get('registry.json'), files.get('registry.json'))
})

t.test('checksums cover every file, and the signature covers the checksums', async (t) => {
  const sums = text('SHA256SUMS')
  const listed = sums
    .trim()
    .split('\n')
    .map((line) => line.split('  '))
  t.same(
    listed.map(([, name]) => name),
    [...files.keys()].filter((name) => !name.startsWith('SHA256SUMS')),
  )
  for (const [sum, name = ''] of listed) {
    t.equal(createHash('sha256').update(text(name)).digest('hex'), sum, name)
  }
  const signature = files.get('SHA256SUMS.sig') as Buffer
  t.ok(verify(null, Buffer.from(sums), publicKey, signature))
  t.notOk(verify(null, Buffer.from(`${sums} `), publicKey, signature))
})

t.test('the commands in README.md verify the package', async (t) => {
  const folder = t.testdir()
  for (const [name, content] of files) {
    mkdirSync(dirname(join(folder, name)), { recursive: true })
    writeFileSync(join(folder, name), content)
  }
  const [, commands = ''] = /```sh\n([\s\S]+?)```/.exec(text('README.md')) ?? []
  t.match(execFileSync('sh', ['-e', '-c', commands], { cwd: folder, encoding: 'utf8' }), /registry\.json: OK/)
  writeFileSync(join(folder, 'registry.csv'), 'other')
  t.throws(() => execFileSync('sh', ['-e', '-c', commands], { cwd: folder, stdio: 'pipe' }))
})

t.test('registry.json and registry.csv have every platform and domain', async (t) => {
  const { platforms, ...head } = JSON.parse(text('registry.json')) as {
    platforms: { id: string; domains: unknown[] }[]
  }
  t.same(head, {
    form: 1,
    version: '2026.11.23',
    commit: RELEASE.commit,
    made_at: '2026-11-18T11:06:40Z',
    license: 'CC0-1.0',
  })
  t.same(
    platforms.map(({ id }) => id),
    catalog.platforms.map(({ id }) => id),
  )
  const rows = parse(text('registry.csv'), { columns: true }) as Record<string, string>[]
  t.equal(rows.length, catalog.rules.length)
  t.match(
    rows.find(({ domain }) => domain === 'claude.ai'),
    { match: 'suffix', role: 'web', purpose: 'use', platform_id: 'claude' },
  )
})

t.test('lists have hosts that indicate use only', async (t) => {
  const hosts: readonly string[] = text('hosts.txt').match(/(?<=^0\.0\.0\.0 ).+$/gm) ?? []
  const zone: readonly string[] = text('rpz.zone').match(/^\S+(?= CNAME)/gm) ?? []
  const domains = [...files]
    .filter(([name]) => name.startsWith('v2fly/'))
    .flatMap(([, content]) => String(content).match(/(?<=^(?:full|domain):).+$/gm) ?? [])
  for (const [name, list] of Object.entries({ hosts, zone: zone.filter((each) => !each.startsWith('*.')), domains })) {
    t.ok(list.length > 500, `${name} has ${list.length} names`)
    const others = list.filter((each) => {
      const rule = matcher.match(each)
      return rule === undefined || !isUseOfAi(rule)
    })
    t.same(others, [], name)
    for (const not of ['canva.com', 'sierra.chat', 'bzr.openai.com', 'copilot.cloud.microsoft'])
      t.notOk(list.includes(not), not)
  }
})

t.test('patterns of v2fly lists match what the patterns of the registry match', async (t) => {
  const all = [...files]
    .filter(([name]) => name.startsWith('v2fly/'))
    .map(([, content]) => String(content))
    .join('')
  const patterns = (all.match(/(?<=^regexp:).+$/gm) ?? []).map((pattern) => new RegExp(pattern))
  for (const { domain, match } of catalog.rules.filter(isUseOfAi)) {
    if (match !== 'pattern') continue
    t.ok(
      patterns.some((pattern) => pattern.test(domain.replaceAll('*', 'x1'))),
      domain,
    )
    t.notOk(
      patterns.some((pattern) => pattern.test(`a.b.c.d.${domain.replaceAll('*', 'x')}.org`)),
      domain,
    )
  }
})

t.test('the programs of the guide sign a key and write an update file that verifies', async (t) => {
  const folder = t.testdir()
  const [root, key, keyPublic, signed] = ['root.pem', 'key.pem', 'key.pub.pem', 'key.json'].map((name) => {
    return join(folder, name)
  }) as [string, string, string, string]
  const run = (program: string, ...args: string[]) => {
    const file = fileURLToPath(new URL(`../../../deploy/release/${program}.js`, import.meta.url))
    return spawnSync(process.execPath, [file, ...args], { encoding: 'utf8' })
  }
  for (const file of [root, key]) execFileSync('openssl', ['genpkey', '-algorithm', 'ed25519', '-out', file])
  const rootPublic = execFileSync('openssl', ['pkey', '-in', root, '-pubout'], { encoding: 'utf8' })
  execFileSync('openssl', ['pkey', '-in', key, '-pubout', '-out', keyPublic])
  const sign = ['--root', root, '--key', keyPublic, '--number', '3', '--out', signed]
  t.match(run('registry-key-main', ...sign, '--until', 'soon'), { status: 2, stderr: /--until/ })
  t.match(run('registry-key-main', ...sign, '--until', '2099-12-31'), { status: 0 })
  const made = run('registry-main', '--key', key, '--signed-key', signed, '--out', folder)
  t.match(made, { status: 0, stderr: '' })
  const [archive = '', update = ''] = made.stdout.trim().split('\n')
  t.match(archive, /posture-registry-\d{4}\.\d{2}\.\d{2}(?:\.\d+)?\.tar\.gz$/)
  for (const file of [archive, update]) execFileSync('sha256sum', ['--check', `${file}.sha256`], { cwd: folder })
  const release = verifiedRelease(readFileSync(update), publicKeysOf(rootPublic))
  t.equal(release.keyNumber, 3)
  t.same(dataOf(release).platforms, catalog.platforms)
  const list = execFileSync('tar', ['-tzf', archive], { encoding: 'utf8' })
  t.match(list, /CHANGELOG\.md/)
  t.match(run('registry-main', '--key', root, '--signed-key', signed, '--out', folder), {
    status: 2,
    stderr: /--signed-key names another key than --key/,
  })
})
