import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { Ajv } from 'ajv'
import addFormats from 'ajv-formats'
import { DaemonSet, StatefulSet } from 'kubernetes-models/apps/v1'
import { ConfigMap, Namespace, Secret, Service } from 'kubernetes-models/v1'
import t from 'tap'
import { composeFile, composeRestrictions, type Document, manifests, podContainers } from '../../support/manifests.ts'
import { VERSION } from '../../support/released.ts'

/** The schema of each kind of manifest, from the API. */
const KINDS = { ConfigMap, DaemonSet, Namespace, Secret, Service, StatefulSet }

for (const name of ['collector.yaml', 'service.yaml']) {
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

t.test('compose.yaml conforms to the Compose Specification', async (t) => {
  const folder = dirname(createRequire(import.meta.url).resolve('dclint/package.json'))
  const schema = JSON.parse(readFileSync(join(folder, 'schemas/compose.schema.json'), 'utf8')) as Document
  const ajv = new Ajv({ strict: false, allErrors: true })
  addFormats.default(ajv)
  const takes = ajv.compile({ ...schema, $schema: 'http://json-schema.org/draft-07/schema#' })
  t.ok(takes(composeFile()), JSON.stringify(takes.errors))
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
    JSON.stringify(composeFile()),
    ...['collector.yaml', 'service.yaml'].map((name) => JSON.stringify(manifests(name))),
  ]
  const versions = files.flatMap((text) =>
    [...text.matchAll(/"image":"posture-\w+:([^"]+)"/g)].map(([, version]) => version),
  )
  t.same([...new Set(versions)].sort(), [`\${POSTURE_VERSION:-${VERSION}}`, VERSION])
  t.equal(versions.length, 5)
})

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
