import {
  BigValueColorMode,
  BigValueGraphMode,
  LegendDisplayMode,
  LegendPlacement,
  ReduceDataOptionsBuilder,
  VizLegendOptionsBuilder,
} from '@grafana/grafana-foundation-sdk/common'
import {
  DashboardBuilder,
  DatasourceVariableBuilder,
  QueryVariableBuilder,
  RowBuilder,
  ThresholdsConfigBuilder,
  ThresholdsMode,
  VariableRefresh,
} from '@grafana/grafana-foundation-sdk/dashboard'
import { DataqueryBuilder } from '@grafana/grafana-foundation-sdk/prometheus'
import { PanelBuilder as StatBuilder } from '@grafana/grafana-foundation-sdk/stat'
import { PanelBuilder as TimeseriesBuilder } from '@grafana/grafana-foundation-sdk/timeseries'

/*
 * The dashboard of Grafana, built by Grafana's own library, which is generated from the schema of
 * dashboards. `npm run docs` writes it to grafana-dashboard.json.
 */

/** Chosen in the dashboard: Prometheus may have any name there. */
const DATASOURCE = { type: 'prometheus', uid: '$datasource' }
/** Dashboards are 24 columns wide. */
const COLUMNS = 24

interface Query {
  readonly expr: string
  readonly legend: string
}

interface Graph {
  readonly title: string
  readonly about: string
  readonly unit?: 'short' | 'percentunit' | 's' | 'bytes' | 'ops'
  readonly max?: number
  readonly queries: readonly Query[]
}

const OF = '{organization=~"$organization"}'
/** The name is empty with --organization-metrics ids. */
const ORGANIZATION = '{{organization_name}} {{organization}}'

/** The most important figures. `steps`: from where a figure is yellow and red. */
const FIGURES: readonly (Graph & { readonly steps: readonly [yellow: number, red: number] })[] = [
  {
    title: 'AI platforms',
    about: 'In the last completed scans. Needs --organization-metrics.',
    queries: [{ expr: `sum(posture_organization_platforms${OF})`, legend: 'Platforms' }],
    steps: [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY],
  },
  {
    title: 'Not approved',
    about: 'Shadow AI: platforms that nobody approved. Needs --organization-metrics.',
    queries: [{ expr: `sum(posture_organization_unapproved_platforms${OF})`, legend: 'Not approved' }],
    steps: [1, 10],
  },
  {
    title: 'Highest risk',
    about: 'The highest overall risk of the organizations, 0 to 100. Needs --organization-metrics.',
    queries: [{ expr: `max(posture_organization_risk_score${OF})`, legend: 'Risk' }],
    steps: [40, 70],
  },
  {
    title: 'Open recommendations',
    about: 'Needs --organization-metrics.',
    queries: [
      {
        expr: `sum(posture_organization_recommendations{organization=~"$organization",status="open"})`,
        legend: 'Open',
      },
    ],
    steps: [1, 20],
  },
  {
    title: 'Silent senders and sensors',
    about: 'Nothing arrived for an hour. Needs --organization-metrics.',
    queries: [
      {
        expr: 'sum(posture_organization_sources{organization=~"$organization",state="silent"}) + sum(posture_organization_sensors{organization=~"$organization",state="silent"})',
        legend: 'Silent',
      },
    ],
    steps: [1, 5],
  },
  {
    title: 'Degraded or down',
    about: 'Programs that do not answer, or say that they are degraded.',
    queries: [
      {
        expr: 'sum(1 - up{job=~"posture-.+"}) + (sum(posture_service_degraded) or vector(0)) + (sum(posture_collector_degraded) or vector(0))',
        legend: 'Programs',
      },
    ],
    steps: [1, 1],
  },
]

const ROWS: readonly { readonly title: string; readonly graphs: readonly Graph[] }[] = [
  {
    title: 'Organizations (need --organization-metrics ids or names)',
    graphs: [
      {
        title: 'AI platforms that are not approved',
        about: 'In the last completed scan of each organization.',
        queries: [{ expr: `posture_organization_unapproved_platforms${OF}`, legend: ORGANIZATION }],
      },
      {
        title: 'Overall risk',
        about: '0 (none) to 100.',
        max: 100,
        queries: [{ expr: `posture_organization_risk_score${OF}`, legend: ORGANIZATION }],
      },
      {
        title: 'Visible share of the traffic',
        about: 'Of the traffic at the sensors, the share whose names were visible.',
        unit: 'percentunit',
        max: 1,
        queries: [{ expr: `posture_organization_visible_ratio${OF}`, legend: ORGANIZATION }],
      },
      {
        title: 'Score by framework',
        about: 'Of the last completed assessments.',
        max: 100,
        queries: [{ expr: `posture_organization_framework_score${OF}`, legend: `{{framework}} ${ORGANIZATION}` }],
      },
      {
        title: 'Senders and sensors by state',
        about: 'Silent: nothing arrived for an hour.',
        queries: [
          { expr: `sum by (state) (posture_organization_sources${OF})`, legend: 'senders {{state}}' },
          { expr: `sum by (state) (posture_organization_sensors${OF})`, legend: 'sensors {{state}}' },
        ],
      },
      {
        title: 'Time since the last completed scan',
        about: 'A scan runs only if its result could change.',
        unit: 's',
        queries: [{ expr: `time() - posture_organization_last_scan_timestamp_seconds${OF}`, legend: ORGANIZATION }],
      },
    ],
  },
  {
    title: 'Service',
    graphs: [
      {
        title: 'Events at the writer',
        about: 'By outcome. Deferred events are sent again.',
        unit: 'ops',
        queries: [
          { expr: 'sum by (outcome) (rate(posture_ingest_events_total[$__rate_interval]))', legend: '{{outcome}}' },
        ],
      },
      {
        title: 'Log messages by format',
        about: 'Syslog messages by detected format.',
        unit: 'ops',
        queries: [
          {
            expr: 'sum by (format) (rate(posture_ingest_format_messages_total[$__rate_interval]))',
            legend: '{{format}}',
          },
        ],
      },
      {
        title: 'Messages by outcome',
        about: 'docs/reference/ingest.md explains the outcomes.',
        unit: 'ops',
        queries: [
          { expr: 'sum by (outcome) (rate(posture_ingest_messages_total[$__rate_interval]))', legend: '{{outcome}}' },
        ],
      },
      {
        title: 'Scans',
        about: 'Completed by trigger, and failed.',
        queries: [
          { expr: 'sum by (trigger) (increase(posture_scans_completed_total[1h]))', legend: '{{trigger}}' },
          { expr: 'sum(increase(posture_scans_failed_total[1h]))', legend: 'failed' },
        ],
      },
      {
        title: 'API answers',
        about: 'By status.',
        unit: 'ops',
        queries: [
          { expr: 'sum by (status) (rate(posture_api_answers_total[$__rate_interval]))', legend: '{{status}}' },
        ],
      },
      {
        title: 'Resident memory',
        about: 'Of all programs.',
        unit: 'bytes',
        queries: [{ expr: 'process_resident_memory_bytes{job=~"posture-.+"}', legend: '{{job}} {{instance}}' }],
      },
      {
        title: 'Processors in use',
        about: 'Of all programs.',
        queries: [
          {
            expr: 'rate(process_cpu_seconds_total{job=~"posture-.+"}[$__rate_interval])',
            legend: '{{job}} {{instance}}',
          },
        ],
      },
    ],
  },
  {
    title: 'Collectors',
    graphs: [
      {
        title: 'Names',
        about: 'In DNS queries and ClientHellos.',
        unit: 'ops',
        queries: [
          { expr: 'sum by (result) (rate(posture_collector_names_total[$__rate_interval]))', legend: '{{result}}' },
        ],
      },
      {
        title: 'Lost packets',
        about: 'By collector and place.',
        unit: 'ops',
        queries: [
          {
            expr: 'sum by (instance, place) (rate(posture_collector_packets_dropped_total[$__rate_interval]))',
            legend: '{{instance}} {{place}}',
          },
        ],
      },
      {
        title: 'Share of Encrypted Client Hello',
        about: 'ClientHellos whose name may be the outer one.',
        unit: 'percentunit',
        max: 1,
        queries: [{ expr: 'posture_collector_ech_share', legend: '{{instance}}' }],
      },
      {
        title: 'Age of the oldest waiting event',
        about: 'It grows while the service is unreachable.',
        unit: 's',
        queries: [{ expr: 'posture_collector_outbox_oldest_seconds', legend: '{{instance}}' }],
      },
    ],
  },
]

/** The dashboard as the JSON that Grafana imports. */
export function dashboardJson(): string {
  const dashboard = new DashboardBuilder('AI platforms and security posture')
    .uid('security-posture')
    .description('Findings of the Security Posture Service, and the state of its programs')
    .tags(['security-posture'])
    .time({ from: 'now-24h', to: 'now' })
    .refresh('1m')
    .timezone('browser')
    .withVariable(new DatasourceVariableBuilder('datasource').label('Prometheus').type('prometheus'))
    .withVariable(
      new QueryVariableBuilder('organization')
        .label('Organization')
        .datasource(DATASOURCE)
        .query('label_values(posture_organization_recommendations, organization)')
        .refresh(VariableRefresh.OnTimeRangeChanged)
        .multi(true)
        .includeAll(true)
        // Also matches the sums of services without these gauges.
        .allValue('.*'),
    )
  for (const figure of FIGURES) dashboard.withPanel(figurePanel(figure))
  for (const { title, graphs } of ROWS) {
    dashboard.withRow(new RowBuilder(title))
    for (const graph of graphs) dashboard.withPanel(graphPanel(graph))
  }
  return `${JSON.stringify(dashboard.build(), null, 2)}\n`
}

function figurePanel({ title, about, queries, steps: [yellow, red] }: (typeof FIGURES)[number]): StatBuilder {
  const steps = [
    { value: null, color: 'green' },
    ...(yellow < red ? [{ value: yellow, color: 'yellow' }] : []),
    ...(Number.isFinite(red) ? [{ value: red, color: 'red' }] : []),
  ]
  const panel = new StatBuilder()
    .title(title)
    .description(about)
    .datasource(DATASOURCE)
    .span(COLUMNS / FIGURES.length)
    .height(4)
    .colorMode(BigValueColorMode.Value)
    .graphMode(BigValueGraphMode.Area)
    .reduceOptions(new ReduceDataOptionsBuilder().calcs(['lastNotNull']))
    .noValue('–')
    .thresholds(new ThresholdsConfigBuilder().mode(ThresholdsMode.Absolute).steps(steps))
  for (const query of queries) panel.withTarget(target(query))
  return panel
}

function graphPanel({ title, about, unit = 'short', max, queries }: Graph): TimeseriesBuilder {
  const panel = new TimeseriesBuilder()
    .title(title)
    .description(about)
    .datasource(DATASOURCE)
    .unit(unit)
    .min(0)
    .span(COLUMNS / 2)
    .height(8)
    .fillOpacity(10)
    .legend(
      new VizLegendOptionsBuilder()
        .displayMode(LegendDisplayMode.List)
        .placement(LegendPlacement.Bottom)
        .showLegend(true)
        .calcs([]),
    )
  if (max !== undefined) panel.max(max)
  for (const query of queries) panel.withTarget(target(query))
  return panel
}

function target({ expr, legend }: Query): DataqueryBuilder {
  return new DataqueryBuilder().datasource(DATASOURCE).expr(expr).legendFormat(legend)
}
