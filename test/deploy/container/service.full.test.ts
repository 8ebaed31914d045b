import { execFileSync } from 'node:child_process'
import { chmodSync, chownSync, mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as later } from 'node:timers/promises'
import t from 'tap'
import { Container, type Restrictions } from '../../support/container.ts'
import { type Image, imageOf } from '../../support/image.ts'
import { composeFile, composeRestrictions, manifests, podContainers } from '../../support/manifests.ts'
import { ip, namespace, skipNamespaces as skip } from '../../support/namespace.ts'

const VOLUME = '/var/lib/posture-service'
const IMAGE: Image | undefined = skip === false ? imageOf(t, 'service') : undefined

/** For each manifest: its restrictions, and the initial state of its volume. */
const MANIFESTS = [
  {
    name: 'compose.yaml',
    container: () => composeRestrictions((composeFile()['services'] as Record<string, unknown>)['service']),
    volume(image: Image, folder: string) {
      execFileSync('cp', ['--archive', `${join(image.root, VOLUME)}/.`, folder])
    },
  },
  {
    name: 'kubernetes/service.yaml',
    container: () =>
      podContainers(manifests('service.yaml').find(({ kind }) => kind === 'StatefulSet')).at(-1)
        ?.restrictions as Restrictions,
    // fsGroup: the owner stays root, the group changes.
    volume(_image: Image, folder: string) {
      chownSync(folder, 0, 10001)
      chmodSync(folder, 0o2775)
    },
  },
]

for (const [index, { name, container, volume }] of MANIFESTS.entries()) {
  t.test(
    `${name}: the service serves, can be administered, and keeps its store`,
    { skip, timeout: 120_000 },
    async (t) => {
      const image = IMAGE as Image
      const network = `spsctr${process.pid}y${index}`
      const inside = namespace(t, network)
      ip(...inside('ip', 'link', 'set', 'lo', 'up'))
      // Ports below 1024 require root in this network. Some engines lift that restriction; the
      // image must not rely on it.
      t.match(
        execFileSync('ip', inside('sysctl', '-n', 'net.ipv4.ip_unprivileged_port_start'), { encoding: 'utf8' }),
        '1024',
      )
      const folder = join(t.testdir(), 'volume')
      mkdirSync(folder)
      volume(image, folder)
      const start = (): Container => Container.start(t, image, container(), { volume: folder, network })

      const first = start()
      await untilHealthy(image, first)
      for (const set of ['CapBnd', 'CapPrm', 'CapEff', 'CapInh', 'CapAmb'])
        t.equal(first.status(set), '0'.repeat(16), set)
      t.equal(first.status('Uid').split('\t')[0], '10001')
      t.equal(first.status('NoNewPrivs'), '1')
      t.equal(first.status('Seccomp'), '2')
      const admin = (...args: string[]) => first.exec('posture-admin', ...args)
      t.match(await admin('organization', 'create', 'Acme', '--domain', 'acme.example'), {
        status: 0,
      })
      const created = await admin('key', 'create', 'test', '--org', 'Acme', '--scope', 'scores:read')
      const [, key = ''] = /"key":"([^"]+)"/.exec(created.output) ?? []
      const url = 'https://127.0.0.1:8443/api/v1/scores'
      // Requests are not retried: when /healthz answers, everything else does.
      const ask = ['curl', '-sk', '-o', '/dev/null', '-w', '%{http_code}', '-H', `X-API-Key: ${key}`, url]
      t.equal(execFileSync('ip', inside(...ask), { encoding: 'utf8' }), '200')
      for (const port of [8443, 9443, 6514, 1514])
        t.match(listening(inside), new RegExp(`:${port}\\b`), `listens on ${port}`)
      t.match(await admin('doctor'), { status: 0 }, 'while the service runs')

      first.kill('KILL')
      await first.ended
      const second = start()
      await untilHealthy(image, second)
      t.equal(execFileSync('ip', inside(...ask), { encoding: 'utf8' }), '200', 'the key is still there')
      second.kill('TERM')
      const { status, output } = await second.ended
      t.equal(status, 0, output)
    },
  )
}

t.test('the image has the documented metadata', { skip }, async (t) => {
  const image = IMAGE as Image
  t.equal(image.user, '10001:10001')
  t.same(image.volumes, [VOLUME])
  t.same(image.ports, ['8443/tcp', '8444/tcp', '9443/tcp', '6514/tcp', '1514/tcp', '1514/udp'])
  const sized = execFileSync('du', ['--summarize', '--apparent-size', '--block-size=1M', image.root], {
    encoding: 'utf8',
  })
  t.comment(`${sized.split('\t')[0]} MB`)
  t.ok(Number(sized.split('\t')[0]) < 145, 'small')
  t.match(
    readFileSync(join(image.root, 'var/lib/dpkg/status.d/libc6'), 'utf8'),
    /^Version: /m,
    'scanners find its libraries',
  )
})

async function untilHealthy(image: Image, container: Container): Promise<void> {
  let last = ''
  for (let polls = 0; polls < 100; polls++) {
    const { status, output } = await container.exec(...image.healthcheck)
    if (status === 0) return
    last = output
    await later(100)
  }
  throw new Error(`not healthy: ${last}; ${container.output}`)
}

function listening(inside: (...command: string[]) => string[]): string {
  return execFileSync('ip', inside('ss', '-Hlntu'), { encoding: 'utf8' })
}
