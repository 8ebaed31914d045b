import { chmodSync, chownSync, copyFileSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Restrictions } from './container.ts'
import { clusterComposeFile, composeRestrictions, type Document, manifests, podContainers } from './manifests.ts'
import { CONTAINER_FILES } from './programs.ts'

/*
 * What the manifests of a cluster run, as an engine reads them: containers with their names,
 * settings, files and restrictions.
 */

export interface PlannedContainer {
  readonly name: string
  /** The name that other containers use. */
  readonly host: string
  readonly kind: 'broker' | 'node'
  readonly environment: Readonly<Record<string, string>>
  /** After the entrypoint of the image. */
  readonly args: readonly string[]
  readonly restrictions: Restrictions
  /** Paths on this machine by paths in the container. */
  readonly files: Readonly<Record<string, string>>
}

/** What the operator prepares: files by name, and the public nkeys by variable of the brokers. */
export interface Prepared {
  readonly files: Readonly<Record<string, string>>
  readonly nkeys: Readonly<Record<string, string>>
  /** For folders that are made for containers. */
  readonly directory: string
}

const USER = 10001

interface ComposeService {
  readonly environment: Record<string, string>
  readonly command?: string[]
  readonly secrets: string[]
  readonly configs?: { source: string; target: string }[]
  readonly volumes: string[]
}

/** The brokers and nodes of compose-cluster.yaml, whose folder `cluster` is the prepared one. */
export function composeCluster({ files, nkeys, directory }: Prepared): PlannedContainer[] {
  const { services, secrets, configs } = clusterComposeFile() as {
    services: Record<string, ComposeService>
    secrets: Record<string, { file: string }>
    configs: Record<string, { file: string }>
  }
  const cluster = join(directory, 'cluster')
  mkdirSync(cluster)
  for (const [name, path] of Object.entries(files)) install(path, join(cluster, name), USER, 0o400)
  for (const name of ['keys', 'broker-1', 'broker-2', 'broker-3']) {
    mkdirSync(join(cluster, name))
    chownSync(join(cluster, name), USER, USER)
  }
  return Object.entries(services).flatMap(([name, service]) => {
    if (!/^(broker|node)-\d$/.test(name)) return []
    const mounts = [
      ...service.secrets.map((secret) => [`/run/secrets/${secret}`, join(directory, secrets[secret]?.file ?? '')]),
      ...(service.configs ?? []).map(({ source, target }) => [
        target,
        join(CONTAINER_FILES, configs[source]?.file ?? ''),
      ]),
      ...service.volumes.slice(1).map((volume) => {
        const [from = '', to = ''] = volume.split(':')
        return [to, join(directory, from)]
      }),
    ]
    const environment = Object.entries(service.environment).map(([variable, value]) => {
      return [variable, value.replace(/^\$\{(\w+_NKEY):\?[^}]+\}$/, (_, name: string) => nkeys[name] ?? '')]
    })
    return {
      ...{ name, host: name, kind: name.startsWith('broker') ? ('broker' as const) : ('node' as const) },
      environment: Object.fromEntries(environment),
      args: service.command ?? [],
      restrictions: composeRestrictions(service),
      files: Object.fromEntries(mounts),
    }
  })
}

interface Pod {
  readonly containers: [{ env: Variable[]; envFrom?: { configMapRef: { name: string } }[]; args?: string[] } & Mounts]
  readonly volumes: { name: string; secret?: Source; configMap?: Source }[]
}
interface Mounts {
  readonly volumeMounts: { name: string; mountPath: string }[]
}
interface Source {
  readonly secretName?: string
  readonly name?: string
  readonly items?: { key: string; path: string }[]
}
interface Variable {
  readonly name: string
  readonly value?: string
  readonly valueFrom?: { fieldRef?: { fieldPath: string }; configMapKeyRef?: { name: string; key: string } }
}

/** Files by name, of each Secret and ConfigMap that the operator creates. */
type Objects = Readonly<Record<string, Readonly<Record<string, string>>>>

/** The pods of cluster.yaml, with one of the Deployment of further nodes. */
export function kubernetesCluster({ nkeys, directory }: Prepared, objects: Objects): PlannedContainer[] {
  const documents = manifests('cluster.yaml')
  const plan = (kind: string, name: string, pods: readonly string[]): PlannedContainer[] => {
    const manifest = found(documents, kind, name)
    const { spec } = manifest as { spec: { serviceName?: string; template: { spec: Pod } } }
    const [{ env, envFrom = [], args = [], volumeMounts }] = spec.template.spec.containers
    const shared = envFrom.flatMap(({ configMapRef }) => {
      return Object.entries(found(documents, 'ConfigMap', configMapRef.name)['data'] as Record<string, string>)
    })
    return pods.map((pod) => {
      const own = env.map(({ name, value, valueFrom }) => {
        const key = valueFrom?.configMapKeyRef?.key
        if (key !== undefined) return [name, nkeys[key] ?? '']
        return [name, valueFrom?.fieldRef?.fieldPath === 'metadata.name' ? pod : (value ?? '')]
      })
      const files = volumeMounts.flatMap(({ name, mountPath }) => {
        const { secret, configMap } = spec.template.spec.volumes.find((each) => each.name === name) ?? {}
        const source = secret ?? configMap
        if (source === undefined) return []
        const content = objects[source.secretName ?? source.name ?? ''] ?? {}
        return [[mountPath, mountedObject(join(directory, `${pod}-${name}`), source, content)]]
      })
      const restrictions = podContainers(manifest)[0]?.restrictions as Restrictions
      return {
        ...{ name: pod, host: spec.serviceName === undefined ? pod : `${pod}.${spec.serviceName}` },
        kind: name === 'posture-broker' ? 'broker' : 'node',
        environment: Object.fromEntries([...shared, ...own]),
        ...{ args, restrictions, files: Object.fromEntries(files) },
      }
    })
  }
  const three = (name: string): string[] => [0, 1, 2].map((ordinal) => `${name}-${ordinal}`)
  return [
    ...plan('StatefulSet', 'posture-broker', three('posture-broker')),
    ...plan('StatefulSet', 'posture-node', three('posture-node')),
    ...plan('Deployment', 'posture-ingest', ['posture-ingest-7d4b9']),
  ]
}

export function found(documents: readonly Document[], kind: string, name: string): Document {
  const document = documents.find((each) => each['kind'] === kind && (each['metadata'] as Document)['name'] === name)
  if (document === undefined) throw new Error(`no ${kind} ${name}`)
  return document
}

/** As kubelet mounts it: of root, readable by the group of fsGroup. */
function mountedObject(folder: string, { items }: Source, content: Readonly<Record<string, string>>): string {
  mkdirSync(folder)
  const names = items ?? Object.keys(content).map((key) => ({ key, path: key }))
  for (const { key, path } of names) {
    const from = content[key]
    if (from === undefined) throw new Error(`${folder}: no key ${key}`)
    install(from, join(folder, path), 0, 0o440)
  }
  return folder
}

function install(from: string, to: string, uid: number, mode: number): void {
  copyFileSync(from, to)
  chownSync(to, uid, USER)
  chmodSync(to, mode)
}
