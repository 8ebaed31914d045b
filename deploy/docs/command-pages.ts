/**
 * The environment of a page's commands. `clone`: a clone of the repository without running
 * programs. `service`: an installed service with the organization Acme and a completed scan, and
 * the settings of a collector. `new service`: an installed service without an organization.
 */
export type Site = 'clone' | 'service' | 'new service'

/** The pages whose sample outputs are generated. */
export const COMMAND_PAGES: Readonly<Record<string, Site>> = {
  'README.md': 'clone',
  'docs/get-started.md': 'clone',
  'docs/collect/network.md': 'service',
  'docs/collect/logs.md': 'service',
  'docs/collect/proxies.md': 'service',
  'docs/collect/dns-servers.md': 'service',
  'docs/use/who-uses-what.md': 'service',
  'docs/use/approve-and-block.md': 'service',
  'docs/use/alerts.md': 'service',
  'docs/connect/api.md': 'service',
  'docs/connect/tickets.md': 'service',
  'docs/connect/siem.md': 'service',
  'docs/use/reports.md': 'service',
  'docs/connect/prometheus.md': 'service',
  'docs/operate/backup.md': 'service',
  'docs/use/console.md': 'service',
  'docs/use/single-sign-on.md': 'service',
  'docs/operate/upgrade.md': 'service',
  'docs/install/containers.md': 'new service',
  'docs/install/kubernetes.md': 'new service',
  'docs/operate/troubleshoot.md': 'service',
  'docs/install/debian.md': 'new service',
  'docs/collect/rsyslog.md': 'service',
  'docs/collect/syslog-ng.md': 'service',
  'docs/use/custom-platforms.md': 'service',
  'docs/collect/try-a-file.md': 'service',
  'docs/collect/firewalls.md': 'service',
  'docs/operate/registry.md': 'service',
  'docs/reference/roles.md': 'new service',
  'docs/use/assessments.md': 'service',
  'docs/use/privacy.md': 'service',
  'docs/reference/assessments.md': 'service',
  'docs/reference/ingest.md': 'service',
  'docs/reference/scoring.md': 'service',
}
