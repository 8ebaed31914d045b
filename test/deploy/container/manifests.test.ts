import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { Ajv } from 'ajv'
import addFormats from 'ajv-formats'
import { DaemonSet, Deployment, StatefulSet } from 'kubernetes-models/apps/v1'
import { HorizontalPodAutoscaler } from 'kubernetes-models/autoscaling/v2'
import { NetworkPolicy } from 'kubernetes-models/networking.k8s.io/v1'
import { PodDisruptionBudget } from 'kubernetes-models/policy/v1'
import { ConfigMap, Namespace, Pod, Secret, Service } from 'kubernetes-models/v1'
import t from 'tap'
import {
  clusterComposeFile,
  composeFile,
  composeRestrictions,
  type Document,
  manifests,
  podContainers,
} from '../../support/manifests.ts'
import { VERSION } from '../../support/released.ts'

/** The schema of each kind of manifest, from the API. */
const KINDS = {
  ...{ ConfigMap, DaemonSet, Deployment, HorizontalPodAutoscaler, Namespace, NetworkPolicy },
  ...{ Pod, PodDisruptionBudget, Secret, Service, StatefulSet },
}

const MANIFESTS = ['cluster.yaml', 'cluster-restore.yaml', 'collector.yaml', 'service.yaml']

for (const name of MANIFESTS) {
  t.test(`kubernetes/${name} conforms to the API schema`, async (t) => {
    for (const document of manifests(name)) {
      const title = `${document['kind']} ${(document['metadata'] as Document)['name']}`
      t.same(unknownFields(document), [], title)
    }
  })
}

t.test('an invalid manifest is rejected', async (t) => {
  const wrong = (change: (container: Record<string, unknown>) => void): Document => {
    const document = structuredClone(daemonSet()) as {
      spec: { template: { spec: { containers: Record<string, unknown>[] } } }
    }
    change(document.spec.template.spec.containers[0] ?? {})
    return document as unknown as Document
  }
  t.throws(() => unknownFields(wrong((container) => Object.assign(container, { image: 7 }))), /image must be string/)
  const withTypo = wrong((container) => Object.assign(container, { securityContext: { readOnlyRootFileSystem: true } }))
  t.same(unknownFields(withTypo), ['/spec/template/spec/containers/0/securityContext/readOnlyRootFileSystem'])
})

t.test('the compose files conform to the Compose Specification', async (t) => {
  const folder = dirname(createRequire(import.meta.url).resolve('dclint/package.json'))
  const schema = JSON.parse(readFileSync(join(folder, 'schemas/compose.schema.json'), 'utf8')) as Document
  const ajv = new Ajv({ strict: false, allErrors: true })
  addFormats.default(ajv)
  const takes = ajv.compile({ ...schema, $schema: 'http://json-schema.org/draft-07/schema#' })
  for (const file of [composeFile(), clusterComposeFile()]) t.ok(takes(file), JSON.stringify(takes.errors))
  const { services, ...rest } = structuredClone(composeFile()) as { services: { collector: Document } }
  t.notOk(takes({ ...rest, services: { collector: { ...services.collector, readonly: true } } }), 'an unknown field')
})

t.test('the manifests for Compose and Kubernetes have exactly the recommended settings', async (t) => {
  const compose = composeRestrictions((composeFile()['services'] as Record<string, unknown>)['collector'])
  const [kubernetes] = podContainers(daemonSet()).slice(-1)
  const recommended = {
    user: { uid: 10001, gid: 10001 },
    capabilities: ['NET_RAW'],
    noNewPrivileges: true,
    readOnlyRoot: true,
    memoryBytes: 256 * 2 ** 20,
    cpus: 1,
  }
  t.match(compose, recommended)
  t.match(kubernetes?.restrictions, recommended)
  const sizes = { '/tmp': 64 * 2 ** 20, '/run': 16 * 2 ** 20 }
  for (const { temporary } of [compose, kubernetes?.restrictions ?? compose]) {
    t.same(Object.fromEntries(temporary.map(({ path, bytes }) => [path, bytes])), sizes)
  }
  for (const { path, options } of compose.temporary)
    for (const word of ['noexec', 'nosuid']) t.ok(options?.includes(word), `${path} ${word}`)
  t.equal((composeFile()['services'] as Record<string, Document>)['collector']?.['network_mode'], 'host')
  t.match(daemonSet(), { spec: { template: { spec: { hostNetwork: true } } } })
})

t.test("every image has this release's version", async (t) => {
  const files = [
    ...[composeFile(), clusterComposeFile()].map((file) => JSON.stringify(file['services'])),
    ...MANIFESTS.map((name) => JSON.stringify(manifests(name))),
  ]
  const versions = files.flatMap((text) =>
    [...text.matchAll(/"image":"posture-\w+:([^"]+)"/g)].map(([, version]) => version),
  )
  t.same([...new Set(versions)].sort(), [`\${POSTURE_VERSION:-${VERSION}}`, VERSION])
  t.equal(versions.length, 11)
})

const CLUSTER = manifests('cluster.yaml')

function ofKind<Spec>(kind: string): { readonly name: string; readonly spec: Spec }[] {
  return CLUSTER.flatMap((document) => {
    if (document['kind'] !== kind) return []
    return { name: String((document['metadata'] as Document)['name']), spec: document['spec'] as Spec }
  })
}

type Labels = Readonly<Record<string, string>>
interface Workload {
  readonly selector: { readonly matchLabels: Labels }
  readonly template: { readonly metadata: { readonly labels: Labels }; readonly spec: Document }
}
interface PodTerm {
  readonly topologyKey: string
  readonly labelSelector: { readonly matchLabels: Labels }
}
interface AntiAffinity {
  readonly requiredDuringSchedulingIgnoredDuringExecution?: readonly PodTerm[]
  readonly preferredDuringSchedulingIgnoredDuringExecution?: readonly { readonly podAffinityTerm: PodTerm }[]
}
interface Port {
  readonly name?: string
  readonly targetPort?: string
  readonly port?: number
  readonly containerPort?: number
}
interface Peer {
  readonly podSelector?: { readonly matchLabels: Labels }
}
interface Policy {
  readonly podSelector: { readonly matchLabels?: Labels }
  readonly ingress?: readonly { readonly from?: readonly Peer[]; readonly ports: readonly Port[] }[]
  readonly egress?: readonly { readonly to?: readonly Peer[]; readonly ports: readonly Port[] }[]
}
const workloads = [...ofKind<Workload>('StatefulSet'), ...ofKind<Workload>('Deployment')]

function selects(labels: Labels = {}, { template }: Workload): boolean {
  return Object.entries(labels).every(([name, value]) => template.metadata.labels[name] === value)
}

function portsOf({ template }: Workload): Port[] {
  return (template.spec['containers'] as { ports: Port[] }[]).flatMap(({ ports }) => ports)
}

t.test('cluster.yaml: what selects pods finds them, and their ports', async (t) => {
  t.same(workloads.map(({ name }) => name).sort(), [
    'posture-broker',
    'posture-console',
    'posture-ingest',
    'posture-node',
  ])
  for (const { name, spec } of workloads) {
    const found = workloads.filter((other) => selects(spec.selector.matchLabels, other.spec))
    t.same(
      found.map((other) => other.name),
      [name],
      `${name} selects its own pods only`,
    )
    t.equal(spec.template.spec['automountServiceAccountToken'], false)
  }
  for (const { name, spec } of ofKind<{ selector: Labels; ports: Port[] }>('Service')) {
    const pods = workloads.filter((workload) => selects(spec.selector, workload.spec))
    t.not(pods.length, 0, name)
    for (const { targetPort } of spec.ports)
      for (const pod of pods)
        t.ok(
          portsOf(pod.spec).some((port) => port.name === targetPort),
          `${name} ${targetPort}`,
        )
  }
  for (const { name, spec } of ofKind<Workload>('PodDisruptionBudget')) {
    const found = workloads.filter((workload) => selects(spec.selector.matchLabels, workload.spec))
    t.same(
      found.map((workload) => workload.name),
      [name],
      `the disruption budget ${name}`,
    )
  }
})

t.test('cluster.yaml: pods of a workload prefer different machines, and those with a store require them', async (t) => {
  for (const { name, spec } of workloads) {
    const { podAntiAffinity } = spec.template.spec['affinity'] as { podAntiAffinity: AntiAffinity }
    const {
      requiredDuringSchedulingIgnoredDuringExecution: required = [],
      preferredDuringSchedulingIgnoredDuringExecution: preferred = [],
    } = podAntiAffinity
    const terms = [...required, ...preferred.map(({ podAffinityTerm }) => podAffinityTerm)]
    t.match(terms, [{ topologyKey: 'kubernetes.io/hostname', labelSelector: spec.selector }], name)
    t.equal(required.length, ['posture-broker', 'posture-node'].includes(name) ? 1 : 0, name)
  }
})

t.test('nodes whose console is behind a proxy have no limits by address', async (t) => {
  const named = workloads.find(({ name }) => name === 'posture-node')?.spec.template.spec as {
    containers: [{ env: { name: string; value?: string }[] }]
  }
  t.match(
    named.containers[0].env.find(({ name }) => name === 'MAX_CONNECTIONS_PER_ADDRESS'),
    { value: '0' },
  )
  const { services } = clusterComposeFile() as { services: Record<string, { environment?: Record<string, string> }> }
  for (const name of ['node-1', 'node-2', 'node-3']) {
    t.equal(services[name]?.environment?.['MAX_CONNECTIONS_PER_ADDRESS'], '0', name)
  }
})

t.test('cluster-restore.yaml has the volume and the restrictions of posture-node-0', async (t) => {
  const [pod] = manifests('cluster-restore.yaml') as [
    { metadata: { namespace: string }; spec: { volumes: { persistentVolumeClaim?: { claimName: string } }[] } },
  ]
  const node = CLUSTER.find(({ kind, metadata }) => {
    return kind === 'StatefulSet' && (metadata as Document)['name'] === 'posture-node'
  }) as { metadata: { namespace: string }; spec: { volumeClaimTemplates: { metadata: { name: string } }[] } }
  t.equal(pod.metadata.namespace, node.metadata.namespace)
  const [claims] = node.spec.volumeClaimTemplates
  t.equal(pod.spec.volumes[0]?.persistentVolumeClaim?.claimName, `${claims?.metadata.name}-posture-node-0`)
  const [own] = podContainers({ spec: { template: pod } })
  t.same(own?.restrictions, podContainers(node)[0]?.restrictions)
})

t.test('cluster.yaml: the network policies allow what the parts need, and nothing else', async (t) => {
  const policies = ofKind<Policy>('NetworkPolicy').map(({ spec }) => spec)
  t.ok(
    policies.some(({ podSelector, ingress, egress }) => !podSelector.matchLabels && !ingress && !egress),
    'by default, nothing connects',
  )
  const flows = workloads.flatMap(({ name: to, spec }) =>
    portsOf(spec).flatMap(({ containerPort }) =>
      [...workloads, { name: 'others', spec: undefined }].flatMap(({ name: from, spec: source }) => {
        const isFrom = ({ podSelector }: Peer): boolean =>
          source !== undefined && podSelector !== undefined && selects(podSelector.matchLabels, source)
        const isTo = ({ podSelector }: Peer): boolean =>
          podSelector !== undefined && selects(podSelector.matchLabels, spec)
        const enters = policies.some(
          ({ podSelector, ingress = [] }) =>
            selects(podSelector.matchLabels, spec) &&
            ingress.some((rule) => hasPort(rule.ports, containerPort) && (rule.from?.some(isFrom) ?? true)),
        )
        const leaves =
          source === undefined ||
          policies.some(
            ({ podSelector, egress = [] }) =>
              selects(podSelector.matchLabels, source) &&
              egress.some((rule) => hasPort(rule.ports, containerPort) && (rule.to?.some(isTo) ?? true)),
          )
        return enters && leaves ? [`${from} -> ${to}:${containerPort}`] : []
      }),
    ),
  )
  t.same(
    [...new Set(flows)].sort(),
    [
      'others -> posture-console:8444',
      'posture-broker -> posture-broker:6222',
      'posture-console -> posture-node:8444',
      'posture-console -> posture-node:9091',
      'posture-ingest -> posture-broker:4222',
      'posture-node -> posture-broker:4222',
      ...['posture-ingest', 'posture-node'].flatMap((name) =>
        ['1514', '6514', '8443', '9443'].map((port) => `others -> ${name}:${port}`),
      ),
    ].sort(),
  )
})

function hasPort(ports: readonly Port[], port: number | undefined): boolean {
  return ports.some((each) => each.port === port)
}

function daemonSet(): Document {
  return manifests('collector.yaml').find(({ kind }) => kind === 'DaemonSet') ?? {}
}

/**
 * Validates a manifest. Returns the paths of fields that the schema does not know. The validator
 * ignores unknown fields, so they are those that it has not read.
 *
 * @throws Error with the validation error.
 */
function unknownFields(document: Document): string[] {
  const kind = KINDS[document['kind'] as keyof typeof KINDS]
  if (kind === undefined) throw new Error(`no schema for ${document['kind']}`)
  const examined = new Set<string>()
  const Kind = kind as unknown as new (data: unknown) => { validate(): void }
  const checked = new Kind(structuredClone(document))
  Kind.prototype.validate.call(watched(checked, '', examined))
  return pathsOf(document, '').filter((path) => !examined.has(path))
}

/** The same object, which records the paths that are read. */
function watched<T extends object>(object: T, path: string, examined: Set<string>): T {
  return new Proxy(object, {
    get(target, key) {
      const value: unknown = Reflect.get(target, key)
      if (typeof key !== 'string') return value
      examined.add(`${path}/${key}`)
      return typeof value === 'object' && value !== null ? watched(value, `${path}/${key}`, examined) : value
    },
  })
}

function pathsOf(value: unknown, path: string): string[] {
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([key, inner]) => [`${path}/${key}`, ...pathsOf(inner, `${path}/${key}`)])
}
