import { Argument, type Command, Option } from 'commander'
import { inOrderOfPriority } from '../../assess/publish.ts'
import { FRAMEWORK_IDS, type FrameworkId } from '../../store/framework.ts'
import { RECOMMENDATION_STATUSES, type Recommendation, type RecommendationStatus } from '../../store/recommendations.ts'
import { changeOptions, ofOrganization, sharedOptions, show, timeText, withStore } from './context.ts'

interface Filter {
  readonly org: string
  readonly status?: RecommendationStatus
  readonly framework?: FrameworkId
}

/** posture-admin recommendation list | set */
export function addRecommendationCommands(program: Command): void {
  const recommendation = program
    .command('recommendation')
    .description('what completed assessments ask for, and how far it is')

  const list = ofOrganization(
    sharedOptions(recommendation.command('list').description('show recommendations in the order of the API')),
  )
    .addOption(new Option('--status <status>', 'only those of this status').choices(RECOMMENDATION_STATUSES))
    .addOption(new Option('--framework <framework>', 'only those of this framework').choices(FRAMEWORK_IDS))
  list.action(({ org, status, framework }: Filter) =>
    withStore(list, ({ store, administration }) => {
      const all = store.recommendations.ofOrganization(administration.organization(org).id)
      const wanted = all.filter(
        (each) =>
          (status === undefined || each.status === status) &&
          (framework === undefined || each.frameworkId === framework),
      )
      print(list, wanted.sort(inOrderOfPriority))
    }),
  )

  const set = ofOrganization(
    changeOptions(
      recommendation
        .command('set <id>')
        .description('give a recommendation another status, by the beginning of its id'),
    ),
  ).addArgument(new Argument('<status>', 'the new status').choices(RECOMMENDATION_STATUSES))
  set.action((id: string, status: RecommendationStatus, options: { org: string }) =>
    withStore(set, ({ administration }) => {
      print(set, [administration.recommendations.setStatus(administration.organization(options.org), id, status)])
    }),
  )
}

function print(command: Command, recommendations: readonly Recommendation[]): void {
  show(command, {
    columns: [
      ['Id', 'id'],
      ['Priority', 'priority'],
      ['Status', 'status'],
      ['Framework', 'framework_id'],
      ['Item', 'item_id'],
      ['Category', 'category'],
      ['Recommendation', 'title'],
    ],
    rows: recommendations.map((each) => ({
      id: each.id,
      title: each.title,
      priority: each.priority,
      status: each.status,
      framework_id: each.frameworkId,
      item_id: each.itemId,
      category: each.category,
      created_at: timeText(each.createdAtMs),
      status_changed_at: timeText(each.statusChangedAtMs),
    })),
    wrapLast: true,
  })
}
