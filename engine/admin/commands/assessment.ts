import { Argument, type Command, InvalidArgumentError, Option } from 'commander'
import { readProfile } from '../../assess/profiles.ts'
import { answer as answerRule, note as noteRule, readAnswer } from '../../assess/rules.ts'
import { loadTemplates } from '../../assess/templates.ts'
import { jsonOption } from '../../process/program.ts'
import type { Answer, Assessment } from '../../store/assessments.ts'
import { type AnyFrameworkId, FRAMEWORK_IDS, FRAMEWORKS, PROFILES } from '../../store/framework.ts'
import { addAssign } from './assessment-assign.ts'
import { addCompare } from './assessment-compare.ts'
import { ASSESSMENT_ID, addAssessmentExport, addAssessmentImport } from './assessment-file.ts'
import { addShow, printAssessments, printProgress } from './assessment-show.ts'
import { addCrosswalk, addSuggest } from './assessment-suggest.ts'
import { changeOptions, ofOrganization, sharedOptions, show, withStore } from './context.ts'
import { frameworkOption } from './framework-option.ts'

/**
 * posture-admin assessment create | list | show | answer | assign | suggest | crosswalk | compare |
 * update | complete | remove | export | import | frameworks
 */
export function addAssessmentCommands(assessment: Command): void {
  addCreate(assessment)
  addList(assessment)
  addShow(assessment)
  addAnswer(assessment)
  addAssign(assessment)
  addSuggest(assessment)
  addCrosswalk(assessment)
  addCompare(assessment)
  addUpdate(assessment)
  addComplete(assessment)
  addRemove(assessment)
  addAssessmentExport(assessment)
  addAssessmentImport(assessment, printAssessments)
  addFrameworks(assessment)
}

interface CreateFlags {
  readonly org?: string
  readonly framework: AnyFrameworkId
  readonly title?: string
  readonly profile?: string
  readonly from?: string
}

function addCreate(assessment: Command): void {
  const create = ofOrganization(
    changeOptions(assessment.command('create').description("Create an assessment with a framework's items")),
  )
    .addOption(frameworkOption('--framework <framework>', 'Assess against this framework').makeOptionMandatory(true))
    .option('--title <title>', "Set the title; by default the framework's name")
    .option('--profile <profile>', 'Use only these profiles or ids of items, comma-separated; by default all')
    .option('--from <id>', 'Carry over the answers of this assessment, where the question is the same')
  create.action((options: CreateFlags) =>
    withStore(create, ({ administration }) => {
      const organization = administration.organization(options.org)
      const { framework, title, from } = options
      const profile = readProfile(options.profile)
      printAssessments(create, [administration.assessments.create(organization, framework, title, profile, from)])
    }),
  )
}

function addList(assessment: Command): void {
  const list = ofOrganization(sharedOptions(assessment.command('list').description('List assessments, newest first')))
  list.action((options: { org?: string }) =>
    withStore(list, ({ store, administration }) => {
      const all = store.assessments.ofOrganization(administration.organization(options.org).id)
      const newestFirst = (a: Assessment, b: Assessment): number =>
        b.startedAtMs - a.startedAtMs || (a.id < b.id ? -1 : 1)
      printAssessments(list, all.sort(newestFirst))
    }),
  )
}

function addAnswer(assessment: Command): void {
  const answer = ofOrganization(
    changeOptions(
      assessment
        .command('answer')
        .description('Answer an item of an assessment')
        .argument('<id>', ASSESSMENT_ID)
        .argument('<item>', 'Id of the item'),
    ),
  )
    .addArgument(
      new Argument('<answer>', 'One of yes, partial, no, not_applicable, unanswered, or 0 to 100').argParser(answerOf),
    )
    .addOption(new Option('--note <text>', 'Record the evidence for the answer').argParser(noteOf))
  answer.action((id: string, item: string, given: Answer, options: { org?: string; note?: string }) =>
    withStore(answer, ({ store, administration }) => {
      const organization = administration.organization(options.org)
      const changed = administration.assessments.answer(organization, id, item, given, options.note)
      printProgress(answer, store, changed)
    }),
  )
}

function addUpdate(assessment: Command): void {
  const update = ofOrganization(
    changeOptions(
      assessment
        .command('update')
        .description("Give an open assessment its framework's current items and keep its answers")
        .argument('<id>', ASSESSMENT_ID),
    ),
  )
  update.action((id: string, options: { org?: string }) =>
    withStore(update, ({ store, administration }) => {
      const updated = administration.assessments.update(administration.organization(options.org), id)
      printProgress(update, store, updated)
    }),
  )
}

function addComplete(assessment: Command): void {
  const complete = ofOrganization(
    changeOptions(
      assessment
        .command('complete')
        .description('Complete an assessment permanently and publish its score')
        .argument('<id>', ASSESSMENT_ID),
    ),
  )
  complete.action((id: string, options: { org?: string }) =>
    withStore(complete, ({ administration }) => {
      const organization = administration.organization(options.org)
      printAssessments(complete, [administration.assessments.complete(organization, id)])
    }),
  )
}

function addRemove(assessment: Command): void {
  const remove = ofOrganization(
    changeOptions(
      assessment
        .command('remove')
        .description('Remove an assessment that is not completed')
        .argument('<id>', ASSESSMENT_ID),
    ),
  )
  remove.action((id: string, options: { org?: string }) =>
    withStore(remove, ({ administration }) => {
      printAssessments(remove, [administration.assessments.remove(administration.organization(options.org), id)])
    }),
  )
}

function addFrameworks(assessment: Command): void {
  const frameworks = jsonOption(assessment.command('frameworks').description('List the built-in frameworks'))
  frameworks.action(() => {
    const templates = loadTemplates()
    show(frameworks, {
      columns: [
        ['Framework', 'framework_id'],
        ['Name', 'name'],
        ['Categories', 'categories'],
        ['Items', 'items'],
        ['Profiles', 'profiles', { hide: 2, wrap: true }],
        ['Version', 'version', { hide: 1 }],
      ],
      rows: FRAMEWORK_IDS.map((id) => ({
        framework_id: id,
        name: FRAMEWORKS[id],
        categories: templates[id].categories.length,
        items: templates[id].categories.reduce((count, { items }) => count + items.length, 0),
        profiles: PROFILES[id],
        version: templates[id].version,
      })),
    })
  })
}

function answerOf(text: string): Answer {
  const given = answerRule.safeParse(readAnswer(text))
  if (given.success) return given.data
  throw new InvalidArgumentError(given.error.issues[0]?.message ?? '')
}

function noteOf(text: string): string {
  const given = noteRule.safeParse(text)
  if (given.success) return given.data
  throw new InvalidArgumentError(given.error.issues[0]?.message ?? '')
}
