"""The table of deeds: which calls of which programs fire which built-in trigger.

A row names a trigger and commands; each command is a program and the sub-commands that must follow it, ``*`` for any
one word. Options that take the next word as their value are listed, so that a value is taken for nothing else.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from memorize.recall.wrappers import GIT_VALUED, words


class Deed(NamedTuple):
    """One command that fires a trigger.

    ``valued`` options take a value; with one of ``unless`` nothing is done; of ``needs`` one must be given, when there
    are any; ``operands`` is how many words that are no options must follow at least.
    """

    trigger: str
    path: tuple[str, ...]
    valued: frozenset[str] = frozenset()
    unless: frozenset[str] = frozenset()
    needs: frozenset[str] = frozenset()
    operands: int = 0


_COMPOSE: Final = "-f --file -p --project-name --profile --env-file --project-directory --ansi --progress --parallel"
# Options before the sub-command that take the next word as their value.
GLOBALS: Final[dict[str, frozenset[str]]] = {
    "git": GIT_VALUED,
    "gh": words("-R --repo --hostname"),
    "glab": words("-R --repo -g --group"),
    "hub": words("-C -c"),
    "npm": words("--prefix -w --workspace --registry --userconfig --loglevel --cache"),
    "pnpm": words("-C --dir --filter -F --registry --reporter --loglevel"),
    "yarn": words("--cwd --registry --cache-folder"),
    "bun": words("--cwd --config -c"),
    "cargo": words("--config -Z -C --color"),
    "uv": words("--directory --project --config-file --cache-dir --color"),
    "pip": words("--proxy --cert --client-cert --cache-dir --python --log --timeout --retries"),
    "poetry": words("-C --directory -P --project"),
    "go": words("-C"),
    "docker": words("--context -c -H --host -l --log-level --config --tlscacert --tlscert --tlskey"),
    "podman": words("-c --connection --url --log-level --root --runroot --identity"),
    "nerdctl": words("-n --namespace -a --address -H --host --snapshotter --data-root --cgroup-manager"),
    "docker-compose": words(_COMPOSE),
    "podman-compose": words(_COMPOSE),
    "aws": words("--profile --region --endpoint-url --output --color"),
    "nomad": words("-address -region -namespace -token"),
    "helmfile": words("-e --environment -f --file -l --selector -n --namespace --kube-context --state-values-file"),
    "terraform": frozenset(),
    "kubectl": words(
        "-n --namespace --context --kubeconfig --cluster --user -s --server --as --as-group --token --request-timeout"
        " --certificate-authority --client-certificate --client-key --cache-dir --tls-server-name -v --v"
    ),
    "helm": words("-n --namespace --kube-context --kubeconfig --kube-apiserver --kube-token --registry-config"),
    "pulumi": words("-C --cwd -s --stack --color"),
    "alembic": words("-c --config -n --name -x"),
    "flask": words("-A --app -e --env-file"),
    "django-admin": words("--settings --pythonpath"),
    "migrate": words("-path -database -source -lock-timeout -prefetch --path --database --source"),
    "goose": words("-dir -table -timeout -env"),
    "dbmate": words("-u --url -d --migrations-dir -e --env -s --schema-file"),
    "cdk": words("--app -a --profile --context -c --output -o"),
    "dotnet": frozenset(),
    "prisma": words("--schema"),
    "composer": words("-d --working-dir"),
}
_SAME_GLOBALS: Final = {"tofu": "terraform", "terragrunt": "terraform", "oc": "kubectl"}
# Options with which a program says how it is used, or only tells what it would do.
HELP: Final = words("--help -h -help -? /?")
DRY: Final = words("--dry-run --dryrun -dry-run")

_BODIES: Final = "-t --title -b --body -F --body-file -l --label -m --milestone -a --assignee -r --reviewer"
PIP_VALUED: Final = words(
    "-r --requirement -c --constraint -e --editable -t --target -i --index-url --extra-index-url -f --find-links"
    " --platform --python-version --implementation --abi --root --prefix --src --progress-bar --no-binary"
    " --only-binary --config-settings -C --report --trusted-host --group"
)
_RAILS: Final = words(
    "db:migrate db:migrate:redo db:migrate:up db:migrate:down db:migrate:reset db:rollback db:reset db:schema:load"
    " db:prepare"
)
_GRADLE: Final = words("publish publishPlugins publishToMavenCentral publishAndReleaseToMavenCentral")
_FLYWAY: Final = words("flyway:migrate liquibase:update liquibase:rollback")
# Build tools take several goals; each of them may stand anywhere among the others. By trigger and program.
GOALS: Final[dict[str, dict[str, frozenset[str]]]] = {
    "package-publish": {
        "mvn": words("deploy release:perform"),
        "mvnw": words("deploy release:perform"),
        "gradle": _GRADLE,
        "gradlew": _GRADLE,
        "rake": words("release"),
    },
    "migration-run": {
        "mvn": _FLYWAY,
        "mvnw": _FLYWAY,
        "gradle": words("flywayMigrate"),
        "gradlew": words("flywayMigrate"),
        "rails": _RAILS,
        "rake": _RAILS,
        "goose": words("up up-by-one up-to down down-to redo reset"),
    },
}
GOALS_VALUED: Final = words("-f -P -pl -s -x -p -b -c -dir -table -env --file --projects --settings --exclude-task")
WINDOWS_DELETERS: Final = words("remove-item ri rd rmdir del erase")
_NODE_ADD: Final = "--tag --registry --filter -F -C --dir --prefix --workspace --omit --include --cwd"


def _deeds(
    trigger: str, commands: str, valued: str = "", unless: str = "", needs: str = "", operands: int = 0
) -> list[tuple[str, Deed]]:
    rest = (words(valued), words(unless), words(needs), operands)
    split = [tuple(command.split()) for command in commands.split(";")]
    return [(names[0], Deed(trigger, names[1:], *rest)) for names in split]


_ROWS: Final = (
    *_deeds(
        "git-commit",
        "git commit",
        "-m -F -C -c -t --message --file --reuse-message --reedit-message --template --author --date --cleanup --fixup"
        " --squash --trailer --pathspec-from-file",
        "--short --porcelain --long",
    ),
    *_deeds("git-push", "git push", "-o --push-option --receive-pack --exec --repo", "-n"),
    *_deeds(
        "git-merge",
        "git merge",
        "-m -F -s -X --file --strategy --strategy-option --into-name --cleanup",
        "--abort --quit",
    ),
    *_deeds(
        "git-rebase",
        "git rebase",
        "-s -X -x --exec --onto --strategy --strategy-option --whitespace",
        "--abort --quit --show-current-patch --edit-todo",
    ),
    *_deeds(
        "git-tag",
        "git tag",
        "-m -F -u --message --file --local-user --cleanup --trailer --sort --format",
        "-l --list -n -v --verify --contains --no-contains --points-at --merged --no-merged --column",
        operands=1,
    ),
    *_deeds("git-reset", "git reset", "--pathspec-from-file"),
    *_deeds("branch-delete", "git branch", "-u --set-upstream-to --sort --format", needs="-d -D --delete"),
    *_deeds("branch-delete", "git push", "-o --push-option --receive-pack --exec --repo", "-n", "-d --delete"),
    *_deeds("pr-create", "gh pr create; gh pr new", f"{_BODIES} -B --base -H --head -p --project -T --template"),
    *_deeds(
        "pr-create",
        "glab mr create; glab mr new",
        "-t --title -d --description -l --label -m --milestone -a --assignee --reviewer -b --target-branch -s"
        " --source-branch -H --head -i --related-issue --template",
    ),
    *_deeds("pr-create", "hub pull-request", f"{_BODIES} --file --message -h --head"),
    *_deeds("pr-merge", "gh pr merge", "-t --subject -b --body -F --body-file -A --author-email --match-head-commit"),
    *_deeds("pr-merge", "glab mr merge; glab mr accept", "-m --message --squash-message --sha"),
    *_deeds(
        "branch-delete",
        "gh pr merge",
        "-t --subject -b --body -F --body-file -A --author-email --match-head-commit",
        needs="-d --delete-branch",
    ),
    *_deeds("branch-delete", "gh pr close", "-c --comment", needs="-d --delete-branch"),
    *_deeds("branch-delete", "glab mr merge; glab mr accept", "-m --message --sha", needs="-d --remove-source-branch"),
    *_deeds(
        "package-publish",
        "npm publish; pnpm publish; bun publish; yarn publish; yarn npm publish; yarn workspace * publish"
        "; yarn workspace * npm publish; lerna publish; cargo publish"
        "; uv publish; poetry publish; pdm publish; flit publish; hatch publish; twine upload; gem push"
        "; changeset publish; vsce publish; jsr publish; nuget push; dotnet nuget push; pnpm recursive publish"
        "; deno publish; maturin publish; maturin upload; dart pub publish; flutter pub publish; mix hex.publish"
        "; pod trunk push; helm push; semantic-release",
        "--tag --otp --access --registry -w --workspace --filter -p --package --token --index --publish-url -r"
        " --repository --repository-url -u --username --password -F --features --target --target-dir --manifest-path -s"
        " -k --source --api-key --new-version -C -f --format",
        "-n",
    ),
    *_deeds("package-publish", "goreleaser release", "-f --config -p --parallelism", "--snapshot"),
    *_deeds("package-publish", "cargo release", "-p --package", needs="-x --execute"),
    *_deeds(
        "container-push",
        "docker push; docker image push; docker compose push; docker manifest push; podman push; podman image push"
        "; podman manifest push; nerdctl push; nerdctl image push; buildah push; crane push; crane copy; crane cp"
        "; oras push; docker-compose push; podman-compose push; podman compose push; nerdctl compose push",
        f"--authfile --creds --cert-dir --format {_COMPOSE}",
    ),
    *_deeds(
        "container-push",
        "docker build; docker buildx build; docker buildx bake; podman build; nerdctl build; docker compose build"
        "; docker-compose build",
        f"{_COMPOSE} -t --tag --build-arg --platform --target -o --output --cache-from --cache-to --secret --ssh",
        needs="--push",
    ),
    *_deeds(
        "infra-apply",
        "terraform apply; terraform destroy; terraform import; terraform state rm; terraform state mv"
        "; terraform state push; terraform taint; terraform untaint; tofu apply; tofu destroy; tofu import"
        "; tofu state rm; tofu state mv; tofu state push; tofu taint; tofu untaint; terragrunt apply"
        "; terragrunt destroy; terragrunt run-all apply; terragrunt run-all destroy; terragrunt run apply"
        "; terragrunt run destroy; pulumi up; pulumi update; pulumi destroy; cdk deploy; cdk destroy; aws-cdk deploy"
        "; aws-cdk destroy; cdktf deploy; cdktf destroy; sam deploy; serverless deploy; sls deploy; helmfile apply"
        "; helmfile sync; helmfile destroy; docker stack deploy; nomad job run; nomad run; argocd app sync",
        "-var -var-file -target -state -parallelism -lock-timeout -replace -backup -state-out -m --message",
    ),
    *_deeds(
        "infra-apply",
        "kubectl apply; kubectl create; kubectl replace; kubectl delete; kubectl patch; kubectl scale; kubectl edit"
        "; kubectl set; kubectl autoscale; kubectl expose; kubectl run; kubectl label; kubectl annotate; kubectl taint"
        "; kubectl cordon; kubectl uncordon; kubectl drain; kubectl rollout restart; kubectl rollout undo; oc apply"
        "; oc create; oc replace; oc delete; oc patch; oc scale",
        "-f --filename -k --kustomize -l --selector -n --namespace -o --output -p --patch --type --replicas --context",
    ),
    *_deeds(
        "infra-apply",
        "helm install; helm upgrade; helm uninstall; helm delete; helm rollback",
        "-f --values --set --set-string --set-file --set-json --version --repo -n --namespace --timeout --kube-context"
        " -o --output --description --post-renderer",
    ),
    *_deeds(
        "infra-apply",
        "ansible-playbook",
        "-i --inventory -e --extra-vars -l --limit -t --tags -u --user --skip-tags -f --forks",
        "--check -C --syntax-check --list-tasks --list-hosts --list-tags",
        operands=1,
    ),
    *_deeds(
        "dependency-add",
        "npm install; npm i; npm add; npm in",
        f"{_NODE_ADD} -w",
        "-g --global",
        operands=1,
    ),
    *_deeds(
        "dependency-add",
        "pnpm add; pnpm install; pnpm i; yarn add; yarn workspace * add; bun add; bun install; bun i"
        "; deno add; dart pub add; flutter pub add",
        _NODE_ADD,
        "-g --global",
        operands=1,
    ),
    *_deeds(
        "dependency-add",
        "uv add; poetry add; pdm add; pipenv install; rye add; hatch dep add; pixi add; conda install; mamba install",
        "--group -G --extra --optional --index --default-index --python -p --package --source -n --name -c --channel"
        " --branch --tag --rev --script --directory --project --marker -m --bounds --file -f",
        operands=1,
    ),
    *_deeds("dependency-add", "cargo add", needs="--path --git"),
    *_deeds("dependency-add", "uv add", "-p --python", needs="-r --requirements"),
    *_deeds(
        "dependency-add",
        "cargo add",
        "-F --features --rename --path --git --branch --tag --rev --registry -p --package --manifest-path --target",
        operands=1,
    ),
    *_deeds(
        "dependency-add",
        "composer require; bundle add; dotnet package add; dotnet add package; dotnet add * package",
        operands=1,
    ),
    *_deeds("migration-run", "alembic upgrade; alembic downgrade; alembic stamp", "--tag", "--sql"),
    *_deeds(
        "migration-run",
        "django-admin migrate; django migrate; flask db upgrade; flask db downgrade",
        "--database",
        "--plan --check",
    ),
    *_deeds(
        "migration-run",
        "prisma migrate deploy; prisma migrate dev; prisma migrate reset; prisma db push; knex migrate:latest"
        "; knex migrate:up; knex migrate:down; knex migrate:rollback; sequelize db:migrate; sequelize-cli db:migrate"
        "; sequelize db:migrate:undo; sequelize-cli db:migrate:undo; sequelize db:migrate:undo:all"
        "; sequelize-cli db:migrate:undo:all; mikro-orm migration:up; mikro-orm migration:down; node-pg-migrate up"
        "; node-pg-migrate down; wrangler d1 migrations apply; typeorm-ts-node-commonjs migration:run"
        "; typeorm-ts-node-esm migration:run; console doctrine:migrations:migrate; phinx migrate; phinx rollback"
        "; aerich upgrade; aerich downgrade; yoyo apply; yoyo rollback; sqitch deploy; sqitch revert"
        "; supabase db reset; sqlx database reset"
        "; typeorm migration:run; typeorm migration:revert; drizzle-kit migrate; drizzle-kit push; supabase db push"
        "; supabase migration up; migrate up; migrate down; migrate goto"
        "; dbmate up; dbmate migrate; dbmate rollback; flyway migrate; flyway undo; liquibase update"
        "; liquibase rollback; sqlx migrate run; sqlx migrate revert; diesel migration run; diesel migration revert"
        "; diesel migration redo; atlas migrate apply; atlas schema apply; mix ecto.migrate; mix ecto.rollback"
        "; dotnet ef database update; sea-orm-cli migrate up; sea-orm-cli migrate down",
        "--schema --name --env --config --url",
    ),
    *_deeds("destructive-delete", "rm; grm", needs="-r -R --recursive"),
    *_deeds("destructive-delete", "git clean", "-e --exclude", "-n", "-f --force"),
    *_deeds("destructive-delete", "rimraf; shred; srm", operands=1),
    *_deeds("destructive-delete", "find", needs="-delete"),
    *_deeds("destructive-delete", "aws s3 rm", needs="--recursive"),
    *_deeds("destructive-delete", "gcloud storage rm; gsutil rm", needs="-r -R --recursive"),
    *_deeds("destructive-delete", "docker volume rm; docker volume prune; podman volume rm; dropdb", operands=0),
)
# Filled by name, since every command of a line is looked up here.
DEEDS: Final[dict[str, tuple[Deed, ...]]] = {
    program: tuple(deed for name, deed in _ROWS if name == program) for program, _ in _ROWS
}
BUILT_IN: Final = (
    "git-commit",
    "git-push",
    "git-merge",
    "git-rebase",
    "git-tag",
    "git-reset",
    "branch-delete",
    "pr-create",
    "pr-merge",
    "package-publish",
    "container-push",
    "infra-apply",
    "dependency-add",
    "destructive-delete",
    "migration-run",
)


def valued_before(program: str) -> frozenset[str]:
    """Return the options of a program that take a value and may stand before its sub-command."""
    return GLOBALS.get(_SAME_GLOBALS.get(program, program), frozenset())
