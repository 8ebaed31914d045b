import { execFileSync } from 'node:child_process'
import { chmodSync, statSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { CaptureSite, SERVICE_NAME } from '../../support/capture-site.ts'
import { Container, type Placement, type Restrictions } from '../../support/container.ts'
import { type Image, imageOf } from '../../support/image.ts'
import { composeFile, composeRestrictions, manifests, podContainers } from '../../support/manifests.ts'
import { skipNamespaces as skip } from '../../support/namespace.ts'
import { scannedMatches } from '../../support/released.ts'

const VOLUME = '/var/lib/posture-collector'
const NODE = '/usr/lib/posture-collector/node'
const NET_RAW_ALONE = (1n << 13n).toString(16).padStart(16, '0')
/** Seccomp mode of a process with a filter: proc(5). */
const FILTERED = '2'

const IMAGE: Image | undefined = skip === false ? imageOf(t, 'collector') : undefined

/** For each manifest: its restrictions, the initial state of its volume, and the writable paths. */
const MANIFESTS = [
  {
    name: 'compose.yaml',
    container: () => composeRestrictions((composeFile()['services'] as Record<string, unknown>)['collector']),
    // An engine copies the image's folder into a new volume.
    async volume(site: CaptureSite, image: Image) {
      const folder = site.folder('volume')
      execFileSync('cp', ['--archive', `${join(image.root, VOLUME)}/.`, folder])
      return folder
    },
    writable: ['/run', '/tmp', VOLUME],
    executable: [VOLUME],
  },
  {
    name: 'kubernetes/collector.yaml',
    container: () => podContainers(daemonSet()).at(-1)?.restrictions as Restrictions,
    // kubelet creates the folder as root. The pod's init container changes its owner.
    async volume(site: CaptureSite, image: Image, t: Test) {
      const folder = site.folder('volume')
      chmodSync(folder, 0o755)
      for (const first of podContainers(daemonSet()).slice(0, -1)) {
        for (const time of ['first', 'second']) {
          const placement = { volume: folder, network: site.network, command: first.command ?? image.entrypoint }
          const { status, output } = await Container.start(t, image, first.restrictions, placement).ended
          t.equal(status, 0, `${first.name}, for the ${time} time: ${output}`)
        }
      }
      return folder
    },
    writable: ['/dev/shm', '/run', '/tmp', VOLUME],
    executable: ['/run', '/tmp', VOLUME],
  },
]

function daemonSet(): unknown {
  return manifests('collector.yaml').find(({ kind }) => kind === 'DaemonSet')
}

for (const [index, { name, container, volume, writable, executable }] of MANIFESTS.entries()) {
  t.test(`${name}: the collector matches, forwards and survives a kill`, { skip, timeout: 240_000 }, async (t) => {
    const image = IMAGE as Image
    const site = await CaptureSite.make(t, `spsctr${process.pid}x${index}`)
    const restrictions = container()
    const placement: Placement = {
      ...{ volume: await volume(site, image, t), network: site.network },
      ...{ environment: site.settings, hosts: `127.0.0.1 ${SERVICE_NAME}` },
    }
    const { uid, gid, mode } = statSync(placement.volume)
    t.same([uid, gid, mode & 0o777], [10001, 10001, 0o700], 'only the collector can read the outbox')
    const first = Container.start(t, image, restrictions, placement)

    await t.test('live capture reaches a scan', async (t) => {
      await site.untilHealth('the service', ({ https_connected }) => https_connected)
      site.play([...Array.from({ length: 30 }, () => 'claude.ai'), 'chatgpt.com', 'www.example.org'])
      await site.untilEvents('acknowledged', 31)
      const health = await site.untilHealth('matches', ({ events_matched }) => events_matched === 31)
      t.equal(health.status, 'running', JSON.stringify(health))
      t.same(await scannedMatches('Acme', site.data), { Claude: 30, ChatGPT: 1 })
      // More packets than fit into memory, in case anything keeps them. Each round fits into the
      // collector's batches, so that a busy machine loses none.
      for (let round = 1; round <= 8; round++) {
        site.play(Array.from({ length: 25_000 }, (_, i) => (i % 100 === 0 ? 'claude.ai' : `h${i}.example.org`)))
        await site.untilEvents('acknowledged', 31 + round * 250)
      }
      const asked = await first.exec(...image.healthcheck)
      t.equal(asked.status, 0, asked.output)
      t.match(asked.output, /"status":"running"/)
    })

    await t.test('the container has exactly the rights in the manifest', async (t) => {
      t.equal(first.status('Uid').split('\t')[0], '10001')
      t.equal(first.status('Gid').split('\t')[0], '10001')
      t.equal(first.status('Groups').trim(), '')
      for (const set of ['CapBnd', 'CapPrm', 'CapEff']) t.equal(first.status(set), NET_RAW_ALONE, set)
      for (const set of ['CapInh', 'CapAmb']) t.equal(first.status(set), '0'.repeat(16), set)
      t.equal(first.status('NoNewPrivs'), '1')
      t.equal(first.status('Seccomp'), FILTERED)
      const tried = await first.exec(NODE, '-e', TRY_EVERYTHING)
      t.same(JSON.parse(tried.output), { writable, executable }, tried.output)
      t.match(await first.exec('/bin/sh'), { status: 255 }, 'there is no shell')
    })

    await t.test('waiting events survive a kill and are forwarded exactly once', async (t) => {
      await site.stopService()
      site.play(Array.from({ length: 20 }, () => 'claude.ai'))
      await site.untilEvents('waiting in the outbox', 20)
      t.comment(memoryOf(first))
      first.kill('KILL')
      await first.ended
      const second = Container.start(t, image, restrictions, placement)
      await site.untilEvents('waiting in the outbox', 20)
      const stats = await second.exec('posture-collector', 'outbox', 'stats', '--json')
      t.equal((JSON.parse(stats.output) as { waiting: number }).waiting, 20)
      await site.startService()
      await site.untilEvents('acknowledged', 20)
      t.same(await scannedMatches('Acme', site.data), { Claude: 2050, ChatGPT: 1 })
      second.kill('TERM')
      const { status, output } = await second.ended
      t.equal(status, 0, output)
      t.notOk(output.includes(site.token), 'no secret is logged')
    })
  })
}

/** How an engine grants the capability, whether the file requests it, and the expected result. */
const DENIED = /CAPTURE_DENIED/
const OPENED = /"result":"ok"/
const GRANTING = [
  { granting: 'permitted', capabilities: ['NET_RAW'], asks: true, outcome: OPENED },
  { granting: 'permitted', capabilities: ['NET_RAW'], asks: false, outcome: DENIED },
  { granting: 'ambient', capabilities: ['NET_RAW'], asks: true, outcome: OPENED },
  { granting: 'ambient', capabilities: ['NET_RAW'], asks: false, outcome: OPENED },
  { granting: 'permitted', capabilities: [], asks: true, outcome: /operation not permitted/ },
  { granting: 'permitted', capabilities: [], asks: false, outcome: DENIED },
] as const

t.test('the program gets the capability with every engine', { skip, timeout: 90_000 }, async (t) => {
  const image = IMAGE as Image
  const restrictions = composeRestrictions((composeFile()['services'] as Record<string, unknown>)['collector'])
  const site = await CaptureSite.make(t, `spsctr${process.pid}x9`)
  const common = { network: site.network, environment: site.settings, hosts: `127.0.0.1 ${SERVICE_NAME}` }
  const [, program = ''] = image.entrypoint
  const check = [program, 'check', '--json']
  // A copy without extended attributes, which hold a file's capabilities.
  const bare = { ...image, root: join(t.testdirName, 'bare') }
  execFileSync('cp', ['--recursive', '--no-dereference', '--preserve=mode,ownership', image.root, bare.root])
  for (const [index, { granting, capabilities, asks, outcome }] of GRANTING.entries()) {
    const { output } = await Container.start(
      t,
      asks ? image : bare,
      { ...restrictions, capabilities },
      { ...common, volume: site.folder(`giving-${index}`), granting, command: [NODE, ...check] },
    ).ended
    t.match(interfaceRow(output), outcome, `${granting} [${capabilities}], the file ${asks ? 'asks' : 'does not ask'}`)
  }

  // Like an init: a program that the engine starts and that starts another.
  execFileSync('cp', ['--archive', join(image.root, NODE), join(bare.root, 'usr/bin/asks')])
  const between = `require('node:child_process').spawnSync('/usr/bin/asks', process.argv.slice(1), { stdio: 'inherit' })`
  const { output } = await Container.start(t, bare, restrictions, {
    ...{ ...common, volume: site.folder('between'), command: [NODE, '-e', between, ...check] },
  }).ended
  t.match(interfaceRow(output), DENIED, 'a program in between loses the capability')
})

function interfaceRow(output: string): string {
  return output.split('\n').find((line) => line.includes('"check":"interface"')) ?? output
}

t.test('the image has the documented metadata', { skip }, async (t) => {
  const image = IMAGE as Image
  t.equal(image.user, '10001:10001')
  t.same(image.volumes, [VOLUME])
  t.same(image.ports, [])
  t.match(image.labels, { 'org.opencontainers.image.title': 'posture-collector' })
  const sized = execFileSync('du', ['--summarize', '--apparent-size', '--block-size=1M', image.root], {
    encoding: 'utf8',
  })
  t.comment(`${sized.split('\t')[0]} MB`)
  t.ok(Number(sized.split('\t')[0]) < 130, 'small')
  const unsafe = execFileSync('find', [image.root, '-perm', '/6000', '-o', '-type', 'f', '-perm', '/022'], {
    encoding: 'utf8',
  })
  t.equal(unsafe, '', 'no file is set-user-ID, or written by others')
})

/** Tries to create and to run a file in every directory. */
const TRY_EVERYTHING = `
  const { chmodSync, copyFileSync, readdirSync, rmSync, writeFileSync } = require('node:fs')
  const { spawnSync } = require('node:child_process')
  const writable = [], executable = []
  const walk = (folder) => {
    const file = folder.replace(/\\/?$/, '/trial')
    try {
      writeFileSync(file, '#!${NODE}\\n')
      writable.push(folder)
      chmodSync(file, 0o700)
      if (spawnSync(file).status === 0) executable.push(folder)
      rmSync(file)
    } catch {}
    let entries = []
    try { entries = readdirSync(folder, { withFileTypes: true }) } catch {}
    for (const entry of entries) {
      const path = folder.replace(/\\/?$/, '/') + entry.name
      if (entry.isDirectory() && !/^\\/(proc|sys)\\//.test(path)) walk(path)
    }
  }
  walk('/')
  console.log(JSON.stringify({ writable: writable.sort(), executable: executable.sort() }))`

function memoryOf(container: Container): string {
  const { peakBytes, failures } = container.memory()
  const mb = (bytes: number): number => Math.round(bytes / 2 ** 20)
  // runc 1.1 reports the peak only for cgroup v1.
  const group =
    peakBytes === 0 ? '' : `; its control group ${mb(peakBytes)} MB with page cache, ${failures} times at the limit`
  return `at most ${container.status('VmHWM')} resident${group}`
}
