//! Lists texts around credentials: files and commands that contain a token, a password, or a key without a fixed form.

/// Texts for any token: the kind of place, and a text in which `{token}` is the token, `{NAME}` its variable, and
/// `{name}` the variable in lower case.
pub const ANYWHERE: &[(&str, &str)] = &[
    ("bare", "{token}"),
    ("argument", "deploytool login --endpoint https://dev.example.com --auth {token} --json"),
    ("bearer", "curl -sS -H \"Authorization: Bearer {token}\" https://api.example.com/v1/me"),
    ("text", "rotate {token} after the release, it is still in the old pipeline"),
    ("list", "- endpoint: dev\n- {token}\n- retries: 3"),
    ("body", "{\"profiles\": {\"dev\": {\"endpoint\": \"https://dev.example.com\", \"value\": \"{token}\"}}}"),
];

/// Texts for tokens that only their name reveals.
pub const WITH_NAME: &[(&str, &str)] = &[
    ("export", "export {NAME}={token}"),
    ("prefix", "{NAME}='{token}' make publish"),
    ("dotenv", "LOG_LEVEL=debug\n{NAME}={token}\nPORT=8080\n"),
    ("docker", "docker run --rm -e {NAME}={token} -p 8080:8080 acme/router"),
    ("powershell", "$env:{NAME} = '{token}'; ./build.ps1"),
    ("yaml", "env:\n  - name: {NAME}\n    value: {token}\n"),
    ("mapping", "{name}: {token}"),
    ("toml", "[service]\n{name} = \"{token}\"\n"),
    ("json", "{\"service\": \"ingest\", \"{name}\": \"{token}\"}"),
    ("code", "client = Client({name}=\"{token}\", timeout=30)"),
    ("secret-set", "echo {token} | gh secret set {NAME}"),
    ("fish", "set -gx {NAME} {token}"),
];

/// Credentials that only the text around them reveals. A text between backticks is a regular expression; an empty pair
/// of backticks becomes a password.
pub const CONTEXTS: &[(&str, &[&str])] = &[
    (
        "url",
        &[
            "postgres://app:``@db.internal:5432/app",
            "DATABASE_URL=mysql://root:``@db.example.com:3306/search?charset=utf8mb4 bin/rails s",
            "mongodb+srv://jane:``@cluster0.example.mongodb.net/billing",
            "redis://:``@cache-01.example.net:6379/0",
            "amqp://worker:``@mq.dev.example.io:5672/jobs",
            "HTTPS_PROXY=http://svc:``@proxy.example.com:3128 npm ci",
            "git clone https://ci-bot:`[A-Za-z0-9]{24}`@git.example.com/acme/api.git",
            "pip install --index-url https://build:`[A-Za-z0-9]{30}`@pypi.example.com/simple acme",
            "smtp://mailer:``@smtp.example.com:587",
            "cloudinary://`[0-9]{15}`:`[A-Za-z0-9_-]{27}`@acme",
        ],
    ),
    (
        "query",
        &[
            "wget 'https://dl.example.com/pkg.tgz?token=`[A-Za-z0-9_-]{31}`'",
            "https://api.example.com/v1/items?page=2&api_key=`[A-Za-z0-9]{32}`",
            "curl 'https://maps.example.com/tiles?access_token=`[A-Za-z0-9]{40}`'",
            "https://acme.blob.core.windows.net/c/f?sv=2022-11-02&sr=b&sig=`[A-Za-z0-9]{42}`%3D",
        ],
    ),
    (
        "webhook",
        &[
            "https://hooks.slack.com/services/T`[A-Z0-9]{8}`/B`[A-Z0-9]{10}`/`[A-Za-z0-9]{24}`",
            "https://discord.com/api/webhooks/`[1-9][0-9]{18}`/`[A-Za-z0-9_-]{68}`",
            "curl https://api.telegram.org/bot`[1-9][0-9]{9}`:AA`[A-Za-z0-9_-]{33}`/getMe",
        ],
    ),
    (
        "header",
        &[
            "curl -H 'X-API-Key: `[A-Za-z0-9]{32}`' https://api.example.com/v1/orders",
            "http GET https://api.example.com/me 'Authorization: Bearer `[A-Za-z0-9_-]{64}`'",
            "curl -H 'Authorization: Basic `[A-Za-z0-9+/]{30}`==' https://api.example.com",
            "curl -H 'PRIVATE-TOKEN: `[A-Za-z0-9_-]{20}`' https://git.example.com/api/v4/projects",
            "curl -b 'session=`[A-Za-z0-9]{48}`' https://app.example.com/admin",
            "Cookie: sessionid=`[a-z0-9]{32}`; csrftoken=`[A-Za-z0-9]{64}`",
            "git -c http.extraheader='AUTHORIZATION: basic `[A-Za-z0-9+/]{40}`' fetch",
        ],
    ),
    (
        "flag",
        &[
            "argocd login argocd.example.com --username admin --password ``",
            "helm upgrade api ./chart --set auth.password=`` --wait",
            "az login --service-principal -u 5f1c7d3e -p `` --tenant acme.onmicrosoft.com",
            "docker login registry.example.com -u deploy -p ``",
            "kubectl --token=`[A-Za-z0-9_-]{76}` --server=https://10.0.0.1 get pods",
            "terraform apply -var db_password=``",
            "kubectl create secret generic db --from-literal=password=``",
            "vault kv put secret/api password=``",
            "gcloud sql users set-password app --instance=prod --password=``",
            "twine upload -u acme -p `` dist/*",
            "kubeadm join 10.0.0.1:6443 --token `[a-z0-9]{6}`.`[a-z0-9]{16}`",
        ],
    ),
    (
        "tool",
        &[
            "curl -u 'app:``' https://example.com",
            "mysql -uapp -p'``' -h localhost app",
            "sshpass -p '``' ssh deploy@host",
            "redis-cli -a `` ping",
            "keytool -list -keystore app.jks -storepass ``",
            "openssl pkcs12 -in a.p12 -passin pass:`` -nodes",
            "ldapsearch -x -D cn=admin -w `` -b dc=acme",
            "smbclient //nas/share -U 'acme%``'",
            "mosquitto_pub -h mq -u app -P `` -t a -m b",
            "htpasswd -b .htpasswd admin ``",
            "net use Z: \\\\nas\\share /user:acme ``",
            "aws configure set aws_secret_access_key `[A-Za-z0-9/+]{40}`",
            "npm config set //registry.npmjs.org/:_authToken `[A-Za-z0-9]{36}`",
            "echo `` | docker login --username ci --password-stdin ghcr.io",
            "ConvertTo-SecureString '``' -AsPlainText -Force",
            "rclone config create s3 s3 access_key_id x secret_access_key `[A-Za-z0-9/+]{40}`",
        ],
    ),
    (
        "assignment",
        &[
            "export PGPASSWORD='``'",
            "DB_PASSWORD=`` docker compose up",
            "export COOKIE_SECRET=`[A-Za-z0-9]{24}`",
            "spring.datasource.password=``",
            "password: \"``\"",
            "{\"host\": \"db\", \"user\": \"app\", \"password\": \"``\"}",
            "signing.storePassword=``",
            "ADMIN_PASS=``",
            "const clientSecret = '`[A-Za-z0-9_-]{40}`';",
            "auth = {\"user\": \"qa\", \"passwd\": \"``\"}",
            "jwt_secret: `[A-Za-z0-9]{32}`",
        ],
    ),
    (
        "connection",
        &[
            "Server=db;Database=app;User Id=sa;Password=``;Encrypt=true",
            "DefaultEndpointsProtocol=https;AccountName=acme;AccountKey=`[A-Za-z0-9+/]{86}`==;EndpointSuffix=core.windows.net",
            "Endpoint=sb://acme.servicebus.windows.net/;SharedAccessKeyName=Root;SharedAccessKey=`[A-Za-z0-9+/]{43}`=",
            "jdbc:postgresql://db/app?user=app&password=``",
            "host=db user=app password='``' dbname=app",
        ],
    ),
    (
        "file",
        &[
            "machine api.example.com login app@example.com password ``",
            "//npm.pkg.github.com/:_authToken=`[A-Za-z0-9]{40}`",
            "[client]\nuser=app\npassword=``\n",
            "<server><id>nexus</id><username>ci</username><password>``</password></server>",
            "[Interface]\nPrivateKey = `[A-Za-z0-9+/]{43}`=\nAddress = 10.8.0.2/32",
            "[default]\naws_access_key_id = AK`IA[A-Z2-7]{16}`\naws_secret_access_key = `[A-Za-z0-9/+]{40}`\n",
            "users:\n- name: ci\n  user:\n    token: `[A-Za-z0-9_-]{64}`\n",
            "otpauth://totp/Acme:ci@example.com?secret=`[A-Z2-7]{32}`&issuer=Acme",
        ],
    ),
    (
        "sentence",
        &[
            "the db password is ``",
            "log in as qa with password `` on staging",
            "The API key is `[A-Za-z0-9]{36}`",
            "credentials: admin / ``",
            "pw: ``",
        ],
    ),
    (
        "hex",
        &[
            "`[a-f0-9]{32}`",
            "BUILD_ID=`[a-f0-9]{32}`",
            "nix-prefetch-git --rev `[a-f0-9]{40}`",
            "deploy --build `[A-F0-9]{64}` now",
            "https://example.com/r/`[a-f0-9]{48}`/log",
        ],
    ),
];
