/** The contents of a released program. Files are paths from the repository's root. */
export interface Program {
  /** The name of its package, archive and image. */
  readonly name: 'posture-collector' | 'posture-service'
  /** A short description. */
  readonly title: string
  /** The description as a sentence. */
  readonly about: string
  readonly commands: readonly { readonly name: string; readonly entry: string }[]
  /** Files that run as threads, as pool tasks, or as processes of the command itself. */
  readonly threads: readonly string[]
  readonly tasks: readonly string[]
  readonly steps: readonly string[]
  /** Files that run as processes with Node flags of their own. */
  readonly processes: readonly string[]
  /** Files that posture-admin loads first. */
  readonly preloads: readonly string[]
  /** Files that it reads. */
  readonly files: readonly string[]
  readonly addons: readonly AddonName[]
  /** Node flags for its commands. */
  readonly nodeFlags: readonly string[]
  /** The systemd unit, and the settings file of an installation. */
  readonly unit: string
  readonly settings: string
  /** Sample files for other programs, in `examples` of its documentation. */
  readonly examples: readonly string[]
  /**
   * The file with the secret without which it does not start, and the setting that may have the
   * secret instead; empty if none.
   */
  readonly secretFile: string
  readonly secretSetting: string
}

export type AddonName = 'pcap.node' | 'lmdb.node' | 'argon2.node'

/** Files to which pages of the documentation link. Each package has all pages. */
const LINKED_EXAMPLES: readonly string[] = [
  'deploy/container/compose-cluster.yaml',
  ...['cluster', 'cluster-restore', 'collector', 'service'].map((name) => `deploy/container/kubernetes/${name}.yaml`),
  'deploy/nats/nats.conf',
  'deploy/proxies/haproxy-cluster.cfg',
]

export const COLLECTOR: Program = {
  name: 'posture-collector',
  title: 'sensor that sees which AI platforms a network uses',
  about: 'Watches DNS queries and the server names of TLS and QUIC for AI platforms and forwards what matches.',
  commands: [{ name: 'posture-collector', entry: 'dist/collector/main.js' }],
  threads: ['dist/collector/pipeline/capture-thread.js'],
  tasks: ['dist/collector/pipeline/lane-worker.js'],
  steps: ['dist/collector/check/step-process.js'],
  processes: [],
  preloads: [],
  files: [
    'dist/registry/catalog.json',
    'collector/selftest/golden.json',
    'collector/selftest/golden.pcap',
    'package.json',
  ],
  addons: ['pcap.node', 'lmdb.node'],
  // Nothing is allocated per packet, so a small young generation does not increase the number of
  // collections and saves 6 MB of resident memory.
  nodeFlags: ['--max-semi-space-size=2'],
  unit: 'deploy/systemd/posture-collector.service',
  settings: 'deploy/systemd/collector.env',
  examples: LINKED_EXAMPLES,
  secretFile: '/etc/posture-collector/token',
  secretSetting: 'SVC_TOKEN',
}

export const SERVICE: Program = {
  name: 'posture-service',
  title: 'service that says which AI platforms an organization uses',
  about: 'Receives events and logs, scans them for AI platforms and serves the results through a read-only REST API.',
  commands: [
    { name: 'posture-service', entry: 'dist/api/main.js' },
    { name: 'posture-admin', entry: 'dist/engine/admin/main.js' },
  ],
  threads: [
    'dist/api/thread.js',
    'dist/console/thread.js',
    'dist/engine/ingest/lane-worker.js',
    'dist/engine/ingest/socket-thread.js',
    'dist/engine/check/check-worker.js',
  ],
  tasks: ['dist/api/background-worker.js'],
  steps: [
    'dist/engine/admin/revocations-process.js',
    'dist/engine/admin/backup-records-process.js',
    'dist/engine/kernel/process/file-finisher-process.js',
  ],
  processes: ['dist/dry-run/main.js'],
  preloads: ['dist/deploy/release/embedded/compile-cache.js'],
  files: [
    'dist/registry/catalog.json',
    'dist/engine/assess/frameworks.json',
    'dist/console/assets.json',
    'dist/console/common-passwords.txt',
    'package.json',
  ],
  addons: ['lmdb.node', 'argon2.node'],
  nodeFlags: [],
  unit: 'deploy/systemd/posture-service.service',
  settings: 'deploy/systemd/service.env',
  examples: [
    ...['posture-list', 'posture-tickets', 'splunk', 'sentinel', 'elastic', 'jira', 'servicenow'].map(
      (name) => `deploy/integrations/${name}.sh`,
    ),
    'deploy/monitoring/grafana-dashboard.json',
    'deploy/monitoring/posture-rules.test.yml',
    'deploy/monitoring/posture-rules.yml',
    'deploy/monitoring/prometheus.yml',
    ...LINKED_EXAMPLES,
  ],
  secretFile: '',
  secretSetting: '',
}

export const PROGRAMS = [COLLECTOR, SERVICE] as const
