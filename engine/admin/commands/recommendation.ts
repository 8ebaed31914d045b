import { Argument, type Command, Option } from 'commander'
import { byPriority } from '../../assess/publish.ts'
import type { AnyFrameworkId } from '../../store/framework.ts'
import { RECOMMENDATION_STATUSES, type Recommendation, type RecommendationStatus } from '../../store/recommendations.ts'
import { changeOptions, ofOrganization, sharedOptions, show, timeText, withStore } from './context.ts'
import { frameworkOption } from './framework-option.ts'

interface Filter {
  readonly org?: string
  readonly status?: RecommendationStatus
  readonly framework?: AnyFrameworkId
  readonly owner?: string
}

/** posture-admin recommendation list | set | assign */
export function addRecommendationCommands(recommendation: Command): void {
  const list = ofOrganization(
    sharedOptions(recommendation.command('list').description('List recommendations in the order of the API')),
  )
    .addOption(new Option('--status <status>', 'Show only this status').choices(RECOMMENDATION_STATUSES))
    .addOption(frameworkOption('--framework <framework>', 'Show only this framework'))
    .addOption(new Option('--owner <name>', "Show only those of this owner; '' for those without one"))
  list.action(({ org, status, framework, owner }: Filter) =>
    withStore(list, ({ store, administration }) => {
      const all = store.recommendations.ofOrganization(administration.organization(org).id)
      const wanted = all.filter(
        (each) =>
          (status === undefined || each.status === status) &&
          (framework === undefined || each.frameworkId === framework) &&
          (owner === undefined || each.owner === owner),
      )
      print(list, wanted.sort(byPriority))
    }),
  )

  const set = ofOrganization(
    changeOptions(
      recommendation
        .command('set')
        .description('Change the status of a recommendation')
        .argument('<id>', 'Id of the recommendation, or at least its first 8 characters'),
    ),
  ).addArgument(new Argument('<status>', 'New status').choices(RECOMMENDATION_STATUSES))
  set.action((id: string, status: RecommendationStatus, options: { org?: string }) =>
    withStore(set, ({ administration }) => {
      print(set, [administration.recommendations.setStatus(administration.organization(options.org), id, status)])
    }),
  )

  const assign = ofOrganization(
    changeOptions(
      recommendation
        .command('assign')
        .description('Assign a recommendation to a person, with a due date')
        .argument('<id>', 'Id of the recommendation, or at least its first 8 characters')
        .argument('<owner>', "Name or e-mail address; '' for nobody"),
    ),
  ).option('--due <day>', "Set the due date, such as 2026-12-01; '' for none")
  assign.action((id: string, owner: string, { org, due }: { org?: string; due?: string }) =>
    withStore(assign, ({ administration }) => {
      const given = { owner, ...(due === undefined ? {} : { dueOn: due }) }
      print(assign, [administration.recommendations.assign(administration.organization(org), id, given)])
    }),
  )
}

function print(command: Command, recommendations: readonly Recommendation[]): void {
  show(command, {
    columns: [
      ['Id', 'id'],
      ['Priority', 'priority', { hide: 2 }],
      ['Status', 'status', { hide: 1 }],
      ['Framework', 'framework_id', { hide: 3 }],
      ['Item', 'item_id', { hide: 4 }],
      ['Category', 'category', { hide: 5 }],
      ['Owner', 'owner', { hide: 6, wrap: true }],
      ['Due', 'due_on', { hide: 7 }],
      ['Recommendation', 'title', { wrap: true }],
    ],
    rows: recommendations.map((each) => ({
      id: each.id,
      title: each.title,
      priority: each.priority,
      status: each.status,
      framework_id: each.frameworkId,
      item_id: each.itemId,
      category: each.category,
      owner: each.owner,
      due_on: each.dueOn ?? '',
      created_at: timeText(each.createdAtMs),
      status_changed_at: timeText(each.statusChangedAtMs),
    })),
  })
}
