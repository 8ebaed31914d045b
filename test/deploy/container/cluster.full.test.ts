import { execFile, execFileSync, spawnSync } from 'node:child_process'
import { chmodSync, chownSync, copyFileSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { nkeys } from '@nats-io/transport-node'
import t, { type Test } from 'tap'
import { packBatch } from '../../../engine/kernel/event/event.ts'
import {
  composeCluster,
  found,
  kubernetesCluster,
  type PlannedContainer,
  type Prepared,
} from '../../support/cluster-containers.ts'
import { Container } from '../../support/container.ts'
import { clusterProxyConfiguration, HAPROXY, HAPROXY_ENVIRONMENT, startClusterProxy } from '../../support/haproxy.ts'
import { type Image, imageOf } from '../../support/image.ts'
import { type Document, manifests, podContainers } from '../../support/manifests.ts'
import { ip, namespace, skipNamespaces as skip } from '../../support/namespace.ts'
import { REPOSITORY } from '../../support/programs.ts'
import { Sender } from '../../support/store.ts'
import { testFolder } from '../../support/test-folder.ts'
import { until } from '../../support/wait.ts'

/*
 * The containers of both manifests with their settings, files and restrictions, in a network with a
 * namespace for each. The image of NATS is only its program, as in the official image.
 */

const USER = 10001
const BATCH_EVENTS = 50
const CACHE = join(REPOSITORY, 'node_modules/.cache')
const BROKER_CONFIGURATION = join(REPOSITORY, 'deploy/nats/nats.conf')
const NODE_IMAGE: Image | undefined = skip === false ? imageOf(t, 'service') : undefined

class Site {
  readonly #t: Test
  /** Prepares a new volume. */
  readonly #volume: (folder: string, kind: PlannedContainer['kind']) => void
  readonly #prefix: string
  readonly #brokerImage: Image
  readonly #hosts: string
  readonly #addresses = new Map<string, string>()
  readonly #running = new Map<string, Container>()
  readonly #all: Container[] = []
  readonly #folders = new Map<string, string>()
  readonly #ended = new Set<string>()
  readonly #switch: (...command: string[]) => string[]
  readonly #sender = new Sender()
  readonly directory: string
  readonly plans: readonly PlannedContainer[]

  constructor(
    t: Test,
    prefix: string,
    directory: string,
    plans: readonly PlannedContainer[],
    volume: (folder: string, kind: PlannedContainer['kind']) => void,
  ) {
    this.#t = t
    this.#volume = volume
    this.#prefix = prefix
    this.directory = directory
    this.plans = plans
    this.#switch = namespace(t, prefix)
    ip(...this.#inSwitch('ip', 'link', 'add', 'br0', 'type', 'bridge'))
    ip(...this.#inSwitch('ip', 'address', 'add', '10.97.0.254/24', 'dev', 'br0'))
    for (const link of ['lo', 'br0']) ip(...this.#inSwitch('ip', 'link', 'set', link, 'up'))
    for (const [index, { name }] of [...plans, { name: 'proxy' }].entries()) {
      const inside = namespace(t, `${prefix}${name}`)
      const address = `10.97.0.${index + 1}`
      this.#addresses.set(name, address)
      ip(
        ...this.#inSwitch('ip', 'link', 'add', `v${index}`, 'type', 'veth', 'peer', 'name', 'eth0', 'netns'),
        `${prefix}${name}`,
      )
      ip(...this.#inSwitch('ip', 'link', 'set', `v${index}`, 'master', 'br0', 'up'))
      ip(...inside('ip', 'address', 'add', `${address}/24`, 'dev', 'eth0'))
      for (const link of ['lo', 'eth0']) ip(...inside('ip', 'link', 'set', link, 'up'))
    }
    this.#hosts = plans.map(({ name, host }) => `${this.#addresses.get(name)} ${host}`).join('\n')
    const root = join(directory, 'nats')
    mkdirSync(root)
    copyFileSync(join(CACHE, 'nats/usr/sbin/nats-server'), join(root, 'nats-server'))
    chmodSync(join(root, 'nats-server'), 0o755)
    // Unlike the official one, Debian's program loads libraries.
    const libraries = execFileSync('ldd', [join(root, 'nats-server')], { encoding: 'utf8' }).match(/\/lib\S+/g) ?? []
    for (const library of libraries) {
      mkdirSync(join(root, dirname(library)), { recursive: true })
      copyFileSync(library, join(root, library))
    }
    this.#brokerImage = {
      ...{ root, environment: {}, labels: {}, user: '', workingDirectory: '/' },
      ...{ volumes: [], ports: [], entrypoint: ['/nats-server'], healthcheck: [] },
    }
  }

  #inSwitch(...command: string[]): string[] {
    return this.#switch(...command)
  }

  address(name: string): string {
    return this.#addresses.get(name) ?? ''
  }

  /** Starts a container with the data that it has. */
  start(name: string): Container {
    const plan = this.plans.find((each) => each.name === name)
    if (plan === undefined) throw new Error(`no container ${name}`)
    let folder = this.#folders.get(name)
    if (folder === undefined) {
      folder = join(this.directory, `${name}-volume`)
      mkdirSync(folder)
      this.#volume(folder, plan.kind)
      this.#folders.set(name, folder)
    }
    const { environment, files, restrictions, args, kind } = plan
    const image = kind === 'broker' ? this.#brokerImage : (NODE_IMAGE as Image)
    const container = Container.start(this.#t, image, restrictions, {
      ...{ volume: folder, network: `${this.#prefix}${name}`, hosts: this.#hosts, environment, files },
      command: [...image.entrypoint, ...args],
    })
    this.#running.set(name, container)
    this.#all.push(container)
    this.#ended.delete(name)
    void container.ended.then(() => this.#ended.add(name))
    return container
  }

  /**
   * Starts a container with the volume and the files of a stopped one, for one command.
   *
   * @param more replaces parts of the plan
   */
  once(name: string, command: readonly string[], more: Partial<PlannedContainer> = {}): Container {
    const plan = this.plans.find((each) => each.name === name)
    const volume = this.#folders.get(name)
    if (plan === undefined || volume === undefined) throw new Error(`no container ${name}`)
    const { environment, files, restrictions } = { ...plan, ...more }
    const network = `${this.#prefix}${name}`
    const container = Container.start(this.#t, NODE_IMAGE as Image, restrictions, {
      ...{ volume, network, environment, files, command },
    })
    this.#all.push(container)
    return container
  }

  /** Stops containers as an engine does. */
  async end(...names: readonly string[]): Promise<void> {
    const containers = names.map((name) => this.container(name))
    for (const container of containers) container.kill('TERM')
    await Promise.all(containers.map(({ ended }) => ended))
  }

  /** Deletes the volume of a stopped container. The next start gets a new one. */
  deleteVolume(name: string): void {
    const folder = this.#folders.get(name)
    if (folder !== undefined) rmSync(folder, { recursive: true })
    this.#folders.delete(name)
  }

  /** Before the test removes the folder that runc knows the containers from. */
  async stop(): Promise<void> {
    await Promise.all(this.#all.map((container) => container.remove()))
  }

  container(name: string): Container {
    const container = this.#running.get(name)
    if (container === undefined) throw new Error(`${name} does not run`)
    return container
  }

  /** The status and body of an answer, from another machine. '0': none. */
  async ask(url: string, ...more: string[]): Promise<{ status: string; body: string }> {
    const words = this.#switch('curl', '-sk', '--max-time', '10', '-w', '\n%{http_code}', ...more, url)
    const { stdout } = await promisify(execFile)('ip', words).catch((error: { stdout?: string }) => {
      return { stdout: error.stdout ?? '' }
    })
    const end = stdout.lastIndexOf('\n')
    return { status: stdout.slice(end + 1) || '0', body: stdout.slice(0, Math.max(0, end)) }
  }

  async untilReady(name: string): Promise<void> {
    const url = `http://${this.address(name)}:9091/readyz`
    await until(
      () => `${name} is not ready: ${this.container(name).output}`,
      async () => {
        // As an engine does, for example while there is no quorum of brokers yet.
        if (this.#ended.has(name)) {
          this.#t.comment(`${name} ended: ${this.container(name).output}`)
          this.start(name)
        }
        return (await this.ask(url)).status === '200' || undefined
      },
    )
  }

  /** The primary, as a load balancer finds it. */
  primary(names: readonly string[]): Promise<string> {
    return until('no primary', async () => {
      for (const name of names)
        if ((await this.ask(`http://${this.address(name)}:9091/primary`)).status === '200') return name
      return undefined
    })
  }

  /** Sends a batch until it is accepted. */
  async send(host: string, token: string): Promise<number> {
    const body = join(this.directory, 'batch')
    const events = Array.from({ length: BATCH_EVENTS }, () => this.#sender.event('claude.ai', Date.now()))
    writeFileSync(body, packBatch(events))
    const headers = ['-H', `authorization: Bearer ${token}`, '-H', 'content-type: application/msgpack']
    await until(`a batch is not accepted by ${host}`, async () => {
      const { status } = await this.ask(
        `https://${host}:9443/ingest/v1/events`,
        ...headers,
        '--data-binary',
        `@${body}`,
      )
      return status === '200' ? true : undefined
    })
    return BATCH_EVENTS
  }

  /** Runs HAProxy in front of these nodes. */
  startProxy(): void {
    const through = ['ip', 'netns', 'exec', `${this.#prefix}proxy`]
    startClusterProxy(this.#t, this.directory, (name) => this.address(name), through)
  }
}

/** What the guide has people prepare. */
function prepared(directory: string, brokers: readonly string[]): Prepared {
  const at = (name: string): string => join(directory, name)
  const certificate = (name: string, names: readonly string[]): void => {
    const subject = [
      '-subj',
      `/CN=${name}`,
      '-addext',
      `subjectAltName=${names.map((each) => `DNS:${each}`).join(',')}`,
    ]
    const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-keyout', at(`${name}.key`)]
    execFileSync('openssl', ['req', '-x509', '-days', '30', ...key, ...subject, '-out', at(`${name}.pem`)], {
      stdio: 'ignore',
    })
  }
  certificate('broker', brokers)
  certificate('service', ['posture.example'])
  const [user, follower] = [nkeys.createUser(), nkeys.createUser()]
  writeFileSync(at('brokers.nk'), user.getSeed())
  writeFileSync(at('follower.nk'), follower.getSeed())
  const files = ['broker.pem', 'broker.key', 'service.pem', 'service.key', 'brokers.nk', 'follower.nk']
  return {
    files: Object.fromEntries(files.map((name) => [name, at(name)])),
    nkeys: { SERVICE_NKEY: user.getPublicKey(), FOLLOWER_NKEY: follower.getPublicKey() },
    directory,
  }
}

const MANIFESTS = [
  {
    name: 'compose-cluster.yaml',
    brokers: ['broker-1', 'broker-2', 'broker-3'],
    nodes: ['node-1', 'node-2', 'node-3'],
    others: [] as string[],
    plans: (given: Prepared) => composeCluster(given),
    volume(folder: string, kind: PlannedContainer['kind']) {
      if (kind === 'broker') return chownSync(folder, USER, USER)
      const image = NODE_IMAGE as Image
      execFileSync('cp', ['--archive', `${join(image.root, '/var/lib/posture-service')}/.`, folder])
    },
    restoreOnce: restoreWithCompose,
    hasProxy: true,
  },
  {
    name: 'kubernetes/cluster.yaml',
    brokers: ['posture-broker-0', 'posture-broker-1', 'posture-broker-2'],
    nodes: ['posture-node-0', 'posture-node-1', 'posture-node-2'],
    others: ['posture-ingest-7d4b9'],
    plans(given: Prepared) {
      const { files, directory } = given
      const secretsKey = join(directory, 'secrets.key')
      writeFileSync(secretsKey, 'ab'.repeat(32))
      const of = (name: string): string => files[name] ?? ''
      const tls = { 'tls.crt': of('broker.pem'), 'tls.key': of('broker.key'), 'ca.crt': of('broker.pem') }
      const seeds = { 'brokers.nk': of('brokers.nk'), 'follower.nk': of('follower.nk') }
      return kubernetesCluster(given, {
        'posture-brokers': { ...tls, ...seeds, 'nats.conf': BROKER_CONFIGURATION },
        'posture-tls': { 'tls.crt': of('service.pem'), 'tls.key': of('service.key') },
        'posture-keys': { 'secrets.key': secretsKey },
      })
    },
    // fsGroup: the owner stays root, the group changes.
    volume(folder: string) {
      chownSync(folder, 0, USER)
      chmodSync(folder, 0o2775)
    },
    restoreOnce: restoreWithPod,
    hasProxy: false,
  },
]

for (const [index, { name, brokers, nodes, others, plans, volume, restoreOnce, hasProxy }] of MANIFESTS.entries()) {
  t.test(
    `${name}: a cluster starts, survives its primary, and restores a backup`,
    { skip, timeout: 600_000 },
    async (t) => {
      const directory = testFolder(t)
      const names = name.startsWith('compose') ? brokers : brokers.map((each) => `${each}.posture-broker`)
      const site = new Site(t, `sc${process.pid}${index}`, directory, plans(prepared(directory, names)), volume)
      try {
        await check(t, site)
      } finally {
        await site.stop()
      }
    },
  )

  async function check(t: Test, site: Site): Promise<void> {
    for (const broker of brokers) site.start(broker)
    const [first = ''] = nodes
    site.start(first)
    await site.untilReady(first)
    // A node that starts before there is a primary ends, and starts again with the primary's store.
    t.equal(await site.primary([first]), first)
    for (const node of [...nodes.slice(1), ...others]) site.start(node)
    for (const node of [...nodes, ...others]) await site.untilReady(node)
    for (const running of [...brokers, ...nodes].map((each) => site.container(each))) {
      for (const set of ['CapBnd', 'CapEff']) t.equal(running.status(set), '0'.repeat(16), set)
      t.equal(running.status('Uid').split('\t')[0], `${USER}`)
      t.equal(running.status('NoNewPrivs'), '1')
    }

    const admin = async (on: string, ...words: string[]): Promise<string> => {
      const { status, output } = await site.container(on).exec('posture-admin', ...words)
      t.equal(status, 0, `${words.join(' ')}: ${output}`)
      return output
    }
    await admin(first, 'organization', 'create', 'Acme', '--domain', 'acme.example')
    const created = await admin(first, 'key', 'create', 'test', '--org', 'Acme', '--scope', 'discovery:read')
    const key = ['-H', `x-api-key: ${/"key":"([^"]+)"/.exec(created)?.[1]}`]
    const token = `${/"token":"([^"]+)"/.exec(await admin(first, 'token', 'generate', 'test', '--org', 'Acme'))?.[1]}`
    if (hasProxy) site.startProxy()
    const entries = hasProxy ? [site.address('proxy')] : [...nodes, ...others].map((node) => site.address(node))
    let sent = 0
    for (const entry of entries) sent += await site.send(entry, token)

    site.container(first).kill('KILL')
    const next = await site.primary(nodes.slice(1))
    for (const entry of entries.slice(hasProxy ? 0 : 1)) sent += await site.send(entry, token)
    site.start(first)
    await site.untilReady(first)
    const metrics = `http://${site.address(next)}:9091/metrics`
    await until('the log is not read', async () => {
      return /^posture_log_unread_batches 0$/m.test((await site.ask(metrics)).body) || undefined
    })
    await admin(next, 'scan', 'run', '--org', 'Acme')
    // Until the new primary knows the counts of the rate limit: a minute at most.
    const scan = await until('the API does not answer', async () => {
      const answer = await site.ask(`https://${site.address(next)}:8443/api/v1/discovery`, ...key)
      return answer.status === '503' ? undefined : answer
    })
    t.match(scan.body, new RegExp(`"matches":${sent}\\b`))
    for (const node of [...nodes, ...others]) {
      await until(`${node} answers with other bytes`, async () => {
        const { body } = await site.ask(`https://${site.address(node)}:8443/api/v1/discovery`, ...key)
        return body === scan.body ? true : undefined
      })
    }
    if (hasProxy) {
      const proxy = site.address('proxy')
      await until('the proxy answers with other bytes', async () => {
        return (await site.ask(`https://${proxy}:8443/api/v1/discovery`, ...key)).body === scan.body || undefined
      })
      await until('the proxy does not find the console', async () => {
        return (await site.ask(`https://${proxy}:8444/sign-in`)).status === '200' || undefined
      })
    }
    await restore(t, site, { admin, token, sent })
  }

  /** The steps of docs/operate/cluster.md. */
  async function restore(t: Test, site: Site, { admin, token, sent }: Given): Promise<void> {
    const [first = '', ...replicas] = nodes
    await admin(first, 'backup', BACKUP)
    for (const node of [...nodes, ...others]) await site.send(site.address(node), token)
    await site.end(...nodes, ...others)
    await site.end(...brokers)
    for (const each of [...brokers, ...replicas, ...others]) site.deleteVolume(each)
    await restoreOnce(t, site, first)
    for (const broker of brokers) site.start(broker)
    site.start(first)
    await site.untilReady(first)
    t.equal(await site.primary([first]), first)
    for (const node of [...replicas, ...others]) site.start(node)
    for (const node of [...nodes, ...others]) await site.untilReady(node)
    const matches = async (): Promise<string> => admin(first, 'scan', 'show', '--org', 'Acme')
    t.match(await matches(), new RegExp(`"matches":${sent}\\b`), 'what the backup has, and not what was sent later')
    await site.send(site.address(replicas[0] ?? ''), token)
    const metrics = `http://${site.address(first)}:9091/metrics`
    await until('the log is not read', async () => {
      return /^posture_log_unread_batches 0$/m.test((await site.ask(metrics)).body) || undefined
    })
  }
}

const BACKUP = '/var/lib/posture-service/monday.backup'

interface Given {
  /** Runs posture-admin in a container. */
  readonly admin: (on: string, ...words: string[]) => Promise<string>
  readonly token: string
  /** Events in scans. */
  readonly sent: number
}

/** Restores the backup as `docker compose run --entrypoint posture-admin` does. */
async function restoreWithCompose(t: Test, site: Site, node: string): Promise<void> {
  const { status, output } = await site.once(node, ['posture-admin', 'restore', BACKUP, '--force']).ended
  t.equal(status, 0, output)
}

/** Restores the backup with the pod of cluster-restore.yaml. */
async function restoreWithPod(t: Test, site: Site, node: string): Promise<void> {
  const [pod] = manifests('cluster-restore.yaml') as [Document]
  const [container] = podContainers({ spec: { template: pod } })
  if (container?.command === undefined) throw new Error('cluster-restore.yaml: no command')
  const { restrictions, command } = container
  const running = site.once(node, command, { restrictions, environment: {}, files: {} })
  const restored = await until('the pod does not run', async () => {
    const ended = await running.exec('posture-admin', 'restore', BACKUP, '--force')
    return /does not exist|not running/.test(ended.output) ? undefined : ended
  })
  t.equal(restored.status, 0, restored.output)
  await running.remove()
}

t.test('HAProxy accepts the configurations of clusters', async (t) => {
  const { data } = found(manifests('cluster.yaml'), 'ConfigMap', 'posture-console') as { data: Record<string, string> }
  const texts = {
    'haproxy-cluster.cfg': clusterProxyConfiguration((name) => name.replace('node-', '192.0.2.')),
    ...data,
  }
  for (const [name, text] of Object.entries(texts)) {
    const path = join(testFolder(t), name)
    writeFileSync(path, text)
    const { status, stdout, stderr } = spawnSync(HAPROXY, ['-c', '-f', path], {
      env: HAPROXY_ENVIRONMENT,
      encoding: 'utf8',
    })
    t.equal(status, 0, `${name}: ${stdout}${stderr}`)
    t.notMatch(stderr, /WARNING/)
  }
})
