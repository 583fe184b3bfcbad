//! Tests texts that an earlier version of the guard judged wrongly, and similar texts. The version missed some secrets
//! and refused some harmless texts.

use super::tests::{HEX, LETTERS, Maker, clean, refused};

/// The tests whose texts are also checked with small changes, in the module `near`.
pub(super) const CASES: &[fn()] = &[
    passwords_of_vault_files_are_caught,
    entries_of_netrc_are_caught_in_any_white_space,
    secrets_told_in_sentences_are_caught,
    sentences_about_secrets_pass,
    names_and_places_of_secrets_pass,
    commits_are_commits_where_the_syntax_says_so,
    keys_of_a_payment_providers_test_mode_pass,
    what_a_generator_of_documented_formats_found,
];

/// Makes passwords as people choose them.
fn passwords(make: &mut Maker) -> Vec<String> {
    vec![
        ["hunt", "er2"].concat(),
        ["zeb", "ra42lamp"].concat(),
        ["Winter", "2024!"].concat(),
        ["S3cr3t", "P@ss"].concat(),
        make.password(),
    ]
}

#[test]
fn passwords_of_vault_files_are_caught() {
    for pass in passwords(&mut Maker(20)) {
        for text in [
            format!("ansible-vault-pass {pass}"),
            format!("ansible-vault-pass: {pass}"),
            format!("ansible-vault-pass\n{pass}"),
            format!("ansible-vault password {pass}"),
            format!("the ansible vault password is {pass}"),
            format!("ANSIBLE_VAULT_PASSWORD={pass} make"),
            format!("vault-pass {pass}"),
            format!("echo '{pass}' > ~/.ansible-vault-pass"),
            format!("printf '%s' {pass} >> .vault_pass.txt"),
            format!("echo {pass} | tee .vault-password"),
            format!("ansible-vault encrypt_string '{pass}' --name db_password"),
        ] {
            refused(&text);
        }
    }
    for text in [
        "ansible-vault encrypt vars/secret2.yml",
        "ansible-vault view group_vars/all/vault2.yml",
        "ansible-playbook site.yml --vault-password-file ~/.vault_pass2.txt",
        "ansible-vault create --vault-id prod2@prompt secrets.yml",
        "ansible-vault encrypt_string --stdin-name db_password2",
        "ansible-vault encrypt_string --vault-id dev@a_password_file 'foobar' --name 'the_secret'",
        "echo \"$VAULT_PASS\" > .vault_pass",
        "openssl rand -base64 32 > .vault_pass",
        "echo done2 > build.log",
    ] {
        clean(text);
    }
}

#[test]
fn entries_of_netrc_are_caught_in_any_white_space() {
    let mut make = Maker(21);
    let mut passwords = passwords(&mut make);
    // After a login, any literal is a password, even a plain word.
    passwords.push(["sword", "fish"].concat());
    for pass in passwords {
        for text in [
            format!("machine example.com login app password {pass}"),
            format!("machine example.com\nlogin app\npassword {pass}"),
            format!("machine example.com\r\n\tlogin app\r\n\tpassword {pass}\r\n"),
            format!("machine\nexample.com\nlogin\napp\npassword\n{pass}"),
            format!("machine a.b\n login x\n account y\n password {pass}"),
            format!("default\nlogin app\npassword {pass}"),
            format!("cat > ~/.netrc <<EOF\nmachine a.b\nlogin me\npassword {pass}\nEOF"),
            format!("printf 'machine a.b\\nlogin me\\npassword {pass}\\n' > ~/.netrc"),
        ] {
            refused(&text);
        }
    }
    for text in [
        "machine example.com\nlogin me\npassword ${TOKEN}",
        "machine example.com\nlogin me\npassword <token>",
        "machine example.com\nlogin app\npassword YOUR_TOKEN_HERE",
        "machine api.github.com login x-access-token password $GH_TOKEN",
        "netrc entries are machine, login and password",
        "machine learning: password reset tests",
        "machine example.com password rotation is monthly",
        "the default password policy asks for symbols",
    ] {
        clean(text);
    }
}

#[test]
fn secrets_told_in_sentences_are_caught() {
    let mut make = Maker(22);
    for pass in passwords(&mut make) {
        for text in [
            format!("the db password is {pass}"),
            format!("The staging password was {pass}."),
            format!("password is: {pass}"),
            format!("the password for the staging db is {pass}"),
            format!("the password of the db user is now {pass}"),
            format!("Password for admin is {pass}, ask bob"),
            format!("password (staging): {pass}"),
            format!("root password -> {pass}"),
            format!("the wifi password's {pass}"),
            format!("set the password to {pass}"),
            format!("log in with password {pass}"),
            format!("use the password {pass} and the user admin"),
        ] {
            refused(&text);
        }
    }
    for token in
        [make.text(36, LETTERS), make.text(24, LETTERS), make.text(30, HEX), "q7Zk-2Vx9-".to_owned() + "Lw4T-n8Rb"]
    {
        for text in [
            format!("our api key is {token}"),
            format!("our API key is: {token}"),
            format!("the api key for staging is {token}"),
            format!("the webhook secret for dev is {token}"),
            format!("my token is `{token}`"),
        ] {
            refused(&text);
        }
    }
}

#[test]
fn sentences_about_secrets_pass() {
    for text in [
        "the password is in 1Password",
        "the password is hashed with argon2id",
        "password is base64-encoded",
        "the password is PBKDF2-SHA256",
        "the password is AES-256-GCM encrypted",
        "with password scram-sha-256",
        "log in with password oauth2",
        "the password is set by POSTGRES_PASSWORD",
        "the password is column3 of the file",
        "the db password is printed by ./scripts/pw2.sh",
        "the password is checked at login.py:33",
        "password is optional since v2",
        "set the password to expire after 90days",
        "the password is changeme",
        "password is $DB_PASSWORD",
        "the token is <your-token>",
        "the token is RS256",
        "the token is a UUIDv4",
        "the api key is OPENAI_API_KEY",
        "our api key is limited to 100rps",
        "the key is Ed25519",
        "the secret is mounted at /run/secrets/db2",
    ] {
        clean(text);
    }
}

#[test]
fn names_and_places_of_secrets_pass() {
    for text in [
        "docker build --secret id=npmrc,src=$HOME/.npmrc .",
        "docker build --secret id=npm_token,env=NPM_TOKEN -t x .",
        "docker buildx build --secret type=file,id=aws,src=$HOME/.aws/credentials .",
        "docker service create --secret source=db_password,target=db-pass,mode=0400 app",
        "docker secret create my_secret_2024 -",
        "wrangler secret put API_TOKEN",
        "wrangler secret put oauth2ClientSecret --env prod",
        "tsc -p packages/secret-manager/tsconfig.json",
        "npx tsc -p packages/secret-manager/tsconfig.json",
        "npx -p typescript@5.4.2 tsc",
        "kubectl create secret generic my-api-token-v2 --from-file=token=./token.txt",
        "gh secret set S3_KEY_V2 --body \"$X\"",
        "fly secrets set DATABASE_URL",
        "vault kv get -field=password secret/app/db2",
        "aws secretsmanager get-secret-value --secret-id prod/db-password2 --query SecretString",
        "gcloud secrets versions access latest --secret=db-password-v2",
        "heroku config:get SECRET_KEY_BASE2",
        "op read op://vault/item/password",
        "pass show db/password2",
        "npm config set //registry.npmjs.org/:_authToken ${TOKEN}",
    ] {
        clean(text);
    }
}

#[test]
fn commits_are_commits_where_the_syntax_says_so() {
    let mut make = Maker(23);
    for commit in [make.text(40, HEX), make.text(40, HEX).to_uppercase(), make.text(64, HEX)] {
        for text in [
            format!("git checkout {commit}"),
            format!("cd x && git checkout -q {commit} -- src/a.rs"),
            format!("git -C /srv/app reset --hard {commit}~1"),
            format!("git -c color.ui=never --no-pager show {commit}:src/main.rs"),
            format!("git diff {commit}..{commit}"),
            format!("git log {commit}...main"),
            format!("git rebase --onto {commit} main"),
            format!("run `git revert --no-edit {commit}` first"),
            format!("git cherry-pick -x {commit}"),
            format!("git merge --ff-only {commit}"),
            format!("git fetch origin {commit}"),
            format!("git format-patch -1 {commit}"),
            format!("nix build github:o/r/{commit}"),
            format!("nix run gitlab:o/r/{commit}#x"),
            format!("inputs.nixpkgs.url = \"github:NixOS/nixpkgs/{commit}\";"),
            format!("uses: actions/checkout@{commit} # v4"),
            format!("- uses: o/r/.github/workflows/x.yml@{commit}"),
            format!("since https://github.com/o/r/commit/{commit}."),
            format!("[x](https://github.com/o/r/blob/{commit}/src/a.rs#L4-L9)"),
            format!("https://gitlab.com/g/o/r/-/tree/{commit}"),
            format!("curl -O https://raw.githubusercontent.com/o/r/{commit}/install.sh"),
        ] {
            clean(&text);
        }
        for text in [
            commit.clone(),
            format!("git commit -m {commit}"),
            format!("git log --author {commit}"),
            format!("git diff --token={commit}"),
            format!("git show HEAD:token={commit}"),
            format!("git -c http.extraheader={commit} checkout main"),
            format!("git config user.token {commit}"),
            format!("git checkout main && deploy {commit}"),
            format!("git checkout main\n{commit}"),
            format!("mygit checkout {commit}"),
            format!("git clone https://{commit}@github.com/o/r"),
            format!("git push https://x:{commit}@example.com/r"),
            format!("github:{commit}"),
            format!("token:o/r/{commit}"),
            format!("user@{commit}"),
            format!("https://example.com/a@{commit}"),
            format!("https://example.com/hooks/{commit}"),
            format!("https://example.com/commit/{commit}"),
            format!("https://{commit}@github.com/o/r/blob/main/a"),
            format!("https://github.com/o/r/blob/main/a?token={commit}"),
            format!("https://raw.githubusercontent.com/{commit}"),
            format!("https://raw.githubusercontent.com/o/r/main/{commit}"),
            format!("https://github.com/o/r/commit/x-{commit}"),
            format!("/commit/{commit}"),
        ] {
            refused(&text);
        }
    }
    // Only a run of 40 or 64 hex digits can be a commit.
    for length in [32, 39, 41, 63] {
        refused(&format!("git checkout {}", make.text(length, HEX)));
    }
}

#[test]
fn keys_of_a_payment_providers_test_mode_pass() {
    let mut make = Maker(24);
    for length in [24, 99] {
        let body = make.text(length, LETTERS);
        for kind in ["sk_test_", "rk_test_"] {
            let key = format!("{kind}{body}");
            for text in [
                key.clone(),
                format!("STRIPE_SECRET_KEY={key}"),
                format!("stripe listen --api-key {key}"),
                format!("curl https://api.stripe.com/v1/charges -u {key}:"),
                format!("curl -H 'Authorization: Bearer {key}' https://api.stripe.com"),
                format!("apiKey: \"{key}\""),
            ] {
                clean(&text);
            }
        }
        for kind in ["sk_live_", "rk_live_"] {
            refused(&format!("{kind}{body}"));
        }
    }
}

#[test]
fn what_a_generator_of_documented_formats_found() {
    let mut make = Maker(25);
    for _ in 0..20 {
        let (a, b) = (make.text(3, LETTERS), make.text(8, LETTERS));
        for token in [
            // A client secret of Azure may have tildes and dots at many positions.
            format!("{a}8Q~{b}~{}~{}.{}", make.text(7, LETTERS), make.text(9, LETTERS), make.text(7, LETTERS)),
            format!("{a}8Q~~{b}_{}", make.text(24, LETTERS)),
            format!("essu_{}/{}+{b}", make.text(11, LETTERS), make.text(39, LETTERS)),
            format!("tk-us-{}-{}_{b}", make.text(20, LETTERS), make.text(18, LETTERS)),
        ] {
            refused(&token);
            refused(&format!("rotate {token} after the release"));
        }
    }
    clean("mysql -uapp -p\"$MYSQL_PWD\" ledger");
    clean("mysql -u app -p'$MYSQL_PWD' ledger -h db");
    refused(&format!("mysql -uapp -p\"{}\" ledger", make.password()));
}
