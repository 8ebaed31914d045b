import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import type { RequestListener } from 'node:http'
import { createServer } from 'node:https'
import { join } from 'node:path'
import { generate } from 'selfsigned'
import t, { type Test } from 'tap'
import { Store } from '../../../engine/store/store.ts'
import { listenOn } from '../../support/free-port.ts'
import { admin, jsonLines, run, runAdmin } from '../../support/programs.ts'
import {
  BUILT_IN_VERSION,
  FIRST_KEY,
  laterVersion,
  makeUpdate,
  newKey,
  newPlatform,
  SECOND_KEY,
  writeRoot,
} from '../../support/registry-updates.ts'
import { findingsOf } from '../../support/store.ts'

const NEW = newPlatform('new-llm', 'llm.example.net')
const HOST = 'llm.example.net'

/** A data directory, the root key that is pinned, and a file for updates. */
async function madeSite(t: Test) {
  const directory = t.testdir()
  const data = join(directory, 'data')
  await admin('organization', 'create', 'Acme', '--domain', 'acme.example', '--data-dir', data)
  t.teardown(async () => {
    const store = new Store(data)
    const findings = findingsOf(store)
    await store.close()
    assert.deepEqual(findings, [])
  })
  const root = writeRoot(directory)
  const file = join(directory, 'registry.update')
  const update = (bytes: Uint8Array, ...args: readonly string[]) => {
    writeFileSync(file, bytes)
    return runAdmin(['registry', 'update', file, '--registry-root', root, '--data-dir', data, ...args])
  }
  const version = async () => (await admin('registry', 'version', '--data-dir', data))[0]
  const platformOf = async (name: string) => (await admin('registry', 'check', name, '--data-dir', data))[0]?.['id']
  return { data, directory, root, file, update, version, platformOf }
}

t.test('an update is shown and installed, and rollback restores what was before', async (t) => {
  const { data, update, version, platformOf } = await madeSite(t)
  t.match(await version(), { version: BUILT_IN_VERSION, installed_at: null, rollback_to: null })
  const first = makeUpdate(laterVersion(1), { platforms: [NEW] })
  const expected = [
    { change: 'version', before: BUILT_IN_VERSION, after: laterVersion(1) },
    { platform_id: 'new-llm', change: 'added', field: 'domains', after: /llm\.example\.net/ },
  ]
  const preview = await update(first, '--dry-run')
  t.match(jsonLines(preview.stdout), expected)
  t.match(await version(), { version: BUILT_IN_VERSION }, 'a dry run installs nothing')
  t.match(jsonLines((await update(first)).stdout), expected)
  t.match(await version(), { version: laterVersion(1), built_in: BUILT_IN_VERSION, rollback_to: 'built-in', key: 1 })
  t.equal(await platformOf(HOST), 'new-llm')

  t.match(await update(first), { status: 0 }, 'the same again changes nothing')
  const second = makeUpdate(laterVersion(2))
  t.match(jsonLines((await update(second)).stdout)[1], { platform_id: 'new-llm', change: 'removed' })
  t.equal(await platformOf(HOST), null)
  t.match(await version(), { version: laterVersion(2), rollback_to: laterVersion(1) })

  const rollback = () => runAdmin(['registry', 'rollback', '--data-dir', data])
  t.match(jsonLines((await rollback()).stdout), [
    { change: 'version', before: laterVersion(2), after: laterVersion(1) },
    { platform_id: 'new-llm', change: 'added' },
  ])
  t.equal(await platformOf(HOST), 'new-llm')
  t.match(await update(second), { status: 0 }, 'the release that was left can be installed again')
  t.match(await rollback(), { status: 0 })
  t.match(await rollback(), { status: 0 })
  t.match(await version(), { version: BUILT_IN_VERSION, installed_at: null })
  t.match(await rollback(), { status: 5, stderr: /CONFLICT no update is installed/ })

  const actions = (await admin('audit', 'list', '--data-dir', data)).map(({ action }) => action)
  for (const action of ['registry.update', 'registry.rollback']) t.ok(actions.includes(action), action)
})

t.test('refused, and nothing is changed', async (t) => {
  const { data, directory, file, root, update, version } = await madeSite(t)
  const good = makeUpdate(laterVersion(2), { platforms: [NEW], signer: SECOND_KEY })
  t.match(await update(good), { status: 0 })
  const damaged = Buffer.from(good)
  damaged[good.length - 20] = (damaged[good.length - 20] ?? 0) ^ 1
  const next = laterVersion(3)
  const twice = { ...NEW, id: 'other' }
  const rows: readonly (readonly [what: string, bytes: Uint8Array, why: RegExp])[] = [
    ['an older version', makeUpdate(laterVersion(1), { signer: SECOND_KEY }), /is older than .* registry rollback/],
    [
      'the same version with other data',
      makeUpdate(laterVersion(2), { signer: SECOND_KEY }),
      /another file of version/,
    ],
    ['a key that was replaced', makeUpdate(next, { signer: FIRST_KEY }), /key 1 signed it, which key 2 has replaced/],
    ['another root', makeUpdate(next, { root: newKey() }), /no pinned root key/],
    ['a damaged file', damaged, /the file is damaged/],
    ['a truncated file', good.subarray(0, -100), /the file is damaged/],
    ['no update file', Buffer.from('platforms: []\n'), /not an update file/],
    ['a domain of two platforms', makeUpdate(next, { signer: SECOND_KEY, platforms: [NEW, twice] }), /occurs twice/],
    ['a version of the far future', makeUpdate('2099.01.01', { signer: SECOND_KEY }), /is in the future/],
  ]
  for (const [what, bytes, why] of rows) {
    t.match(await update(bytes), { status: 5, stdout: '', stderr: /REGISTRY_UPDATE/ }, what)
    t.match((await update(bytes)).stderr, why, what)
    t.match((await update(bytes, '--dry-run')).stderr, why, `${what}, tried`)
    t.match(await version(), { version: laterVersion(2) }, what)
  }
  const missing = ['registry', 'update', join(directory, 'none'), '--registry-root', root, '--data-dir', data]
  t.match(await runAdmin(missing), { status: 5, stderr: /none: no such file/ })
  writeFileSync(file, makeUpdate(next))
  const unpinned = ['registry', 'update', file, '--data-dir', data]
  t.match(await runAdmin(unpinned), { status: 5, stderr: /no root key is pinned; .*REGISTRY_ROOT/ })
  t.match(await runAdmin([...unpinned, '--registry-root', file]), { status: 2, stderr: /expected public Ed25519 keys/ })
})

t.test('a key with a higher number replaces the one before', async (t) => {
  const { update, version } = await madeSite(t)
  t.match(await update(makeUpdate(laterVersion(1), { signer: FIRST_KEY })), { status: 0 })
  t.match(await update(makeUpdate(laterVersion(2), { signer: SECOND_KEY })), { status: 0 })
  t.match(await version(), { key: 2 })
  t.match(await update(makeUpdate(laterVersion(3), { signer: FIRST_KEY })), { status: 5 })
})

t.test('a release that this program cannot read is named, and rollback leaves it', async (t) => {
  const { data, update, version } = await madeSite(t)
  t.match(await update(makeUpdate(laterVersion(1))), { status: 0 })
  const bytes = makeUpdate(laterVersion(2), { json: JSON.stringify({ form: 2 }) })
  const store = new Store(data)
  store.environment.write(() => {
    const { registryReleases: releases } = store
    const sha256 = createHash('sha256').update(bytes).digest('hex')
    releases.put({ version: laterVersion(2), sha256, keyNumber: 1, installedAtMs: 1, bytes })
    releases.setState({ ...releases.state, installed: laterVersion(2), previous: [laterVersion(1)] })
  })
  await store.close()
  const why = /STORE_DAMAGED the installed registry .* is a later form; .*registry rollback/
  t.match(await runAdmin(['registry', 'list', '--data-dir', data]), { status: 4, stderr: why })
  t.match(await runAdmin(['registry', 'rollback', '--data-dir', data]), { status: 0 })
  t.match(await version(), { version: laterVersion(1) })
})

t.test('a process that is killed installs all or nothing', async (t) => {
  const { data, file, root, version } = await madeSite(t)
  writeFileSync(file, makeUpdate(laterVersion(1), { platforms: [NEW] }))
  const parameters = ['registry', 'update', file, '--registry-root', root, '--data-dir', data]
  for (const point of ['registry:verified', 'registry:stored']) {
    t.match(await run('admin', parameters, { POSTURE_FAULT_POINT: point }), { signal: 'SIGKILL' }, point)
    t.match(await version(), { version: BUILT_IN_VERSION, installed_at: null }, point)
  }
  t.match(await run('admin', parameters), { status: 0 })
  t.match(await version(), { version: laterVersion(1) })
})

/** Serves on loopback over TLS, with a certificate of its own. */
async function serveTls(t: Test, directory: string, handler: RequestListener) {
  const pems = await generate([{ name: 'commonName', value: 'localhost' }], {
    extensions: [{ name: 'subjectAltName', altNames: [{ type: 2, value: 'localhost' }] }],
  })
  const server = createServer({ key: pems.private, cert: pems.cert }, handler)
  const port = await listenOn(t, server)
  const ca = join(directory, 'ca.pem')
  writeFileSync(ca, pems.cert)
  return { url: `https://localhost:${port}`, ca }
}

t.test('an update of a URL: checked address, one certificate, no redirect, bounded', async (t) => {
  const { data, directory, root, version } = await madeSite(t)
  const good = makeUpdate(laterVersion(1))
  const asked: (string | undefined)[] = []
  const { url, ca } = await serveTls(t, directory, (request, response) => {
    asked.push(request.url)
    if (request.url === '/moved') response.writeHead(302, { location: '/registry.update' }).end()
    else if (request.url === '/gone') response.writeHead(404).end()
    else if (request.url === '/large') response.writeHead(200).end(Buffer.alloc(9 * 1024 * 1024))
    else if (request.url === '/short') {
      response.writeHead(200, { 'content-length': `${good.length}` }).write(good.subarray(0, 1000), () => {
        response.destroy()
      })
    } else response.writeHead(200).end(good)
  })
  const from = (address: string, ...args: readonly string[]) => {
    return runAdmin(['registry', 'update', address, '--registry-root', root, '--data-dir', data, ...args])
  }
  const trusted = ['--ca-file', ca, '--outbound-networks', '127.0.0.0/8,::1/128']
  const rows: readonly (readonly [address: string, args: readonly string[], why: RegExp])[] = [
    [`${url}/registry.update`, ['--ca-file', ca], /on this machine or in a local or private network/],
    [`${url}/registry.update`, trusted.slice(2), /self-signed certificate/],
    [`${url}/moved`, trusted, /answered 302; redirects are not followed/],
    [`${url}/gone`, trusted, /answered 404/],
    [`${url}/large`, trusted, /sends more than 4194304 bytes/],
    [`${url}/short`, trusted, /REGISTRY_UPDATE/],
    [url.replace('https:', 'http:'), trusted, /expected a file or an https URL/],
    ['ftp://localhost/x', trusted, /expected a file or an https URL/],
  ]
  for (const [address, args, why] of rows) {
    const refused = await from(address, ...args)
    t.equal(refused.status, 5, address)
    t.match(refused.stderr, why, address)
  }
  t.match(await version(), { version: BUILT_IN_VERSION })
  t.same(asked, ['/moved', '/gone', '/large', '/short'], 'a refused address gets no request')
  t.match(await from(`${url}/registry.update?token=secret`, ...trusted), { status: 0 })
  t.match(await version(), { version: laterVersion(1) })
  t.notMatch((await from(`${url}/gone?token=secret`, ...trusted)).stderr, /secret/)
})
