import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse, parseAllDocuments } from 'yaml'
import { z } from 'zod'
import type { Restrictions } from './container.ts'
import { CONTAINER_FILES } from './programs.ts'

/*
 * Reads the restrictions of a container from compose.yaml and the Kubernetes manifests, as an
 * engine would. An unknown key that could restrict the container is an error, so that tests never
 * run with restrictions that differ from the file's.
 */

export type Document = Readonly<Record<string, unknown>>

export function composeFile(): Document {
  return parse(readFileSync(join(CONTAINER_FILES, 'compose.yaml'), 'utf8')) as Document
}

export function manifests(name: string): Document[] {
  const documents = parseAllDocuments(readFileSync(join(CONTAINER_FILES, 'kubernetes', name), 'utf8'))
  return documents.map((document) => {
    if (document.errors.length > 0) throw document.errors[0]
    return document.toJS() as Document
  })
}

/** The file of a cluster, with its aliases and merged keys. */
export function clusterComposeFile(): Document {
  return parse(readFileSync(join(CONTAINER_FILES, 'compose-cluster.yaml'), 'utf8'), { merge: true }) as Document
}

/** Keys that do not restrict the container, or that runc has no setting for. */
const ignored = (...names: string[]): Record<string, z.ZodType> =>
  Object.fromEntries(names.map((name) => [name, z.unknown().optional()]))

/** A named volume or a folder beside the file, and its path in the container. */
const VOLUME = /^(\w[\w-]*|\.\/[\w/-]+):\/[^:]+$/

const composeService = z.strictObject({
  ...ignored(
    'image',
    'build',
    'env_file',
    'environment',
    'secrets',
    'network_mode',
    'ports',
    'restart',
    'logging',
    'stop_grace_period',
    'memswap_limit',
    'command',
    'configs',
    'networks',
    'extra_hosts',
  ),
  user: z.string().regex(/^\d+:\d+$/),
  cap_drop: z.tuple([z.literal('ALL')]),
  cap_add: z.array(z.string()).default([]),
  security_opt: z.tuple([z.literal('no-new-privileges:true')]),
  read_only: z.literal(true),
  tmpfs: z.array(z.string()),
  volumes: z.tuple([z.string().regex(VOLUME)], z.string().regex(VOLUME)),
  mem_limit: z.string().optional(),
  cpus: z.number().optional(),
  pids_limit: z.number(),
  ipc: z.literal('none').optional(),
  ulimits: z.strictObject({ core: z.literal(0) }),
})

/** A container without limits gets as much as a test may need. */
const UNLIMITED = { memoryBytes: 2 ** 31, cpus: 2 }

export function composeRestrictions(service: unknown): Restrictions {
  const given = composeService.parse(service)
  const [uid, gid] = given.user.split(':').map(Number)
  return {
    user: { uid: uid ?? 0, gid: gid ?? 0 },
    capabilities: given.cap_add,
    noNewPrivileges: true,
    readOnlyRoot: true,
    memoryBytes: given.mem_limit === undefined ? UNLIMITED.memoryBytes : bytes(given.mem_limit),
    cpus: given.cpus ?? UNLIMITED.cpus,
    pids: given.pids_limit,
    sharedMemory: given.ipc === undefined,
    temporary: given.tmpfs.map((line) => {
      const [path = '', options = ''] = line.split(':')
      const words = options.split(',')
      const size = words.find((word) => word.startsWith('size=')) ?? ''
      return { path, bytes: bytes(size.slice('size='.length)), options: words.filter((word) => word !== size) }
    }),
    volume: given.volumes[0].split(':')[1] ?? '',
  }
}

const kubernetesContainer = z.strictObject({
  ...ignored('image', 'args', 'env', 'envFrom', 'ports', 'startupProbe', 'livenessProbe', 'readinessProbe'),
  name: z.string(),
  command: z.array(z.string()).optional(),
  securityContext: z.strictObject({
    runAsUser: z.number(),
    runAsGroup: z.number(),
    runAsNonRoot: z.boolean(),
    allowPrivilegeEscalation: z.literal(false),
    readOnlyRootFilesystem: z.literal(true),
    capabilities: z.strictObject({ drop: z.tuple([z.literal('ALL')]), add: z.array(z.string()).default([]) }),
    seccompProfile: z.strictObject({ type: z.literal('RuntimeDefault') }),
  }),
  resources: z.strictObject({
    limits: z.strictObject({ memory: z.string(), cpu: z.string().optional(), ...ignored('ephemeral-storage') }),
    requests: z.unknown(),
  }),
  volumeMounts: z.array(z.strictObject({ name: z.string(), mountPath: z.string(), readOnly: z.boolean().optional() })),
})
const volume = z.object({
  name: z.string(),
  secret: z.strictObject({ secretName: z.string(), defaultMode: z.number(), ...ignored('items') }).optional(),
  configMap: z.strictObject({ name: z.string(), ...ignored('items') }).optional(),
  /** Without a medium, on the disk of the machine. */
  emptyDir: z.strictObject({ medium: z.literal('Memory').optional(), sizeLimit: z.string() }).optional(),
})
const pod = z.strictObject({
  ...ignored(
    'hostNetwork',
    'dnsPolicy',
    'automountServiceAccountToken',
    'enableServiceLinks',
    'tolerations',
    'affinity',
  ),
  ...ignored('terminationGracePeriodSeconds', 'restartPolicy'),
  securityContext: z.strictObject(ignored('fsGroup', 'fsGroupChangePolicy')).optional(),
  initContainers: z.array(kubernetesContainer).default([]),
  containers: z.tuple([kubernetesContainer]),
  volumes: z.array(volume),
})
const workload = z.object({ spec: z.object({ template: z.object({ spec: pod }) }) })

export interface PodContainer {
  readonly name: string
  readonly command?: readonly string[]
  readonly restrictions: Restrictions
}

/** The init containers, then the main container. */
export function podContainers(manifest: unknown): PodContainer[] {
  const { initContainers, containers, volumes } = workload.parse(manifest).spec.template.spec
  return [...initContainers, ...containers].map((container) => {
    const { securityContext, resources, volumeMounts, name, command } = container
    const temporary = volumeMounts.flatMap(({ name, mountPath }) => {
      const found = volumes.find((each) => each.name === name)?.emptyDir
      return found?.medium === undefined ? [] : [{ path: mountPath, bytes: bytes(found.sizeLimit) }]
    })
    const files = volumes.filter(({ secret, configMap }) => secret ?? configMap).map(({ name }) => name)
    const lasting = volumeMounts.filter(({ name, mountPath }) => {
      return !files.includes(name) && !temporary.some(({ path }) => path === mountPath)
    })
    if (lasting.length !== 1) throw new Error(`${name}: ${lasting.length} volumes`)
    return {
      name,
      ...(command === undefined ? {} : { command }),
      restrictions: {
        user: { uid: securityContext.runAsUser, gid: securityContext.runAsGroup },
        capabilities: securityContext.capabilities.add,
        noNewPrivileges: true,
        readOnlyRoot: true,
        memoryBytes: bytes(resources.limits.memory),
        cpus: resources.limits.cpu === undefined ? UNLIMITED.cpus : Number(resources.limits.cpu),
        sharedMemory: true,
        temporary,
        volume: lasting[0]?.mountPath ?? '',
      },
    }
  })
}

const UNITS: Readonly<Record<string, number>> = {
  k: 2 ** 10,
  m: 2 ** 20,
  g: 2 ** 30,
  Ki: 2 ** 10,
  Mi: 2 ** 20,
  Gi: 2 ** 30,
}

function bytes(text: string): number {
  const [, figure, unit = ''] = /^(\d+)([a-zA-Z]+)$/.exec(text) ?? []
  const factor = UNITS[unit]
  if (figure === undefined || factor === undefined) throw new Error(`${text}: no size`)
  return Number(figure) * factor
}
