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
  'docs/guides/watch-a-link.md': 'service',
  'docs/guides/use-existing-logs.md': 'service',
  'docs/guides/use-proxy-logs.md': 'service',
  'docs/guides/use-dns-logs.md': 'service',
  'docs/guides/find-out-who-uses-a-platform.md': 'service',
  'docs/guides/approve-and-block.md': 'service',
  'docs/guides/send-alerts.md': 'service',
  'docs/guides/connect.md': 'service',
  'docs/guides/create-tickets.md': 'service',
  'docs/guides/send-findings-to-a-siem.md': 'service',
  'docs/guides/make-a-report.md': 'service',
  'docs/guides/monitor-with-prometheus.md': 'service',
  'docs/guides/back-up-and-restore.md': 'service',
  'docs/guides/open-the-console.md': 'service',
  'docs/guides/sign-in-with-your-identity-provider.md': 'service',
  'docs/guides/upgrade.md': 'service',
  'docs/guides/deploy-with-containers.md': 'new service',
  'docs/guides/deploy-on-kubernetes.md': 'new service',
  'docs/guides/troubleshoot.md': 'service',
  'docs/guides/deploy-with-debian-packages.md': 'new service',
  'docs/guides/forward-with-rsyslog.md': 'service',
  'docs/guides/forward-with-syslog-ng.md': 'service',
  'docs/guides/manage-an-organization.md': 'service',
  'docs/guides/try-a-file.md': 'service',
  'docs/guides/use-firewall-logs.md': 'service',
  'docs/guides/update-the-registry.md': 'service',
  'docs/guides/change-the-registry.md': 'clone',
  'docs/guides/publish-the-registry.md': 'clone',
  'docs/reference/administration.md': 'new service',
  'docs/reference/assessments.md': 'service',
  'docs/reference/ingest.md': 'service',
  'docs/reference/scans.md': 'service',
}
